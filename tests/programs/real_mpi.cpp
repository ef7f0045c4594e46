// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "real_mpi.h"

#include <fmt/format.h>

#include <thread>

#include "callbacks.h"
#include "job.h"
#include "named_reach.h"

namespace accord::programs {

using model::kNoRequest;
using model::Random;
using Choice = Typed::Choice;

RealMpi::RealMpi(MPI_Comm world, std::uint64_t seed)
    : random_(seed + static_cast<std::uint64_t>(job.rank) * 7919) {
  comms_.push_back({world, seed, 0});
}

Random RealMpi::draw() {
  const std::lock_guard<std::mutex> locked(mutex_);
  return Random(random_.next());
}

RealMpi::CommState& RealMpi::comm_state(Comm comm) {
  const std::lock_guard<std::mutex> locked(mutex_);
  return comms_[static_cast<std::size_t>(comm)];
}

MPI_Comm RealMpi::handle_of(Comm comm) { return comm_state(comm).handle; }

RealMpi::Comm RealMpi::add_comm(std::uint64_t salt) {
  const std::lock_guard<std::mutex> locked(mutex_);
  comms_.push_back({MPI_COMM_NULL, salt, 0});
  return static_cast<Comm>(comms_.size()) - 1;
}

void RealMpi::free_comm(Comm comm) {
  MPI_Comm& handle = comm_state(comm).handle;
  if (handle != MPI_COMM_NULL) check(MPI_Comm_free(&handle), "MPI_Comm_free");
}

void RealMpi::drop_requests() {
  if (!requests_.empty()) fail(Symptom::error, "requests of the program are left at its end");
}

RealMpi::Request RealMpi::add(std::unique_ptr<State> state) {
  const std::lock_guard<std::mutex> locked(mutex_);
  const Request request = ++last_request_;
  requests_[request] = std::move(state);
  return request;
}

RealMpi::State& RealMpi::state_of(Request request) {
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end()) fail(Symptom::error, "the program uses a request that has ended");
  return *found->second;
}

// After a completion: forgets what is not persistent.
void RealMpi::ended(Request& request) {
  State& state = state_of(request);
  if (state.persistent) return;
  if (state.handle != MPI_REQUEST_NULL)
    fail(Symptom::error, "a request that has completed is not MPI_REQUEST_NULL");
  const std::lock_guard<std::mutex> locked(mutex_);
  requests_.erase(request);
  request = kNoRequest;
}

RealMpi::Status RealMpi::converted(const MPI_Status& status) {
  Status result;
  result.source = status.MPI_SOURCE;
  result.tag = status.MPI_TAG;
  int flag = 0;
  check(MPI_Test_cancelled(&status, &flag), "MPI_Test_cancelled");
  result.cancelled = flag != 0;
  int count = 0;
  if (!result.cancelled) check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
  result.size_bytes = static_cast<std::size_t>(count);
  return result;
}

RealMpi::Request RealMpi::isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  Random random = draw();
  const Typed data(buffer, buffer.count, Choice::any, random);
  auto state = std::make_unique<State>();
  const bool synchronous = mode == Send::synchronous;
  check((synchronous ? MPI_Issend : MPI_Isend)(data.data(), data.count(), data.type(), dst, tag,
                                               handle_of(comm), &state->handle),
        synchronous ? "MPI_Issend" : "MPI_Isend");
  return add(std::move(state));
}

RealMpi::Request RealMpi::irecv(Comm comm, int src, int tag, const Buffer& buffer) {
  Random random = draw();
  const Typed data(buffer, buffer.count, Choice::any, random);
  auto state = std::make_unique<State>();
  if (src == model::kAnySource) src = MPI_ANY_SOURCE;
  check(
      MPI_Irecv(data.data(), data.count(), data.type(), src, tag, handle_of(comm), &state->handle),
      "MPI_Irecv");
  return add(std::move(state));
}

RealMpi::Request RealMpi::send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  Random random = draw();
  const Typed data(buffer, buffer.count, Choice::any, random);
  auto state = std::make_unique<State>();
  state->persistent = true;
  const bool synchronous = mode == Send::synchronous;
  check((synchronous ? MPI_Ssend_init : MPI_Send_init)(data.data(), data.count(), data.type(), dst,
                                                       tag, handle_of(comm), &state->handle),
        synchronous ? "MPI_Ssend_init" : "MPI_Send_init");
  return add(std::move(state));
}

RealMpi::Request RealMpi::recv_init(Comm comm, int src, int tag, const Buffer& buffer) {
  Random random = draw();
  const Typed data(buffer, buffer.count, Choice::any, random);
  auto state = std::make_unique<State>();
  state->persistent = true;
  check(MPI_Recv_init(data.data(), data.count(), data.type(), src, tag, handle_of(comm),
                      &state->handle),
        "MPI_Recv_init");
  return add(std::move(state));
}

void RealMpi::send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  Random random = draw();
  const Typed data(buffer, buffer.count, Choice::any, random);
  const bool synchronous = mode == Send::synchronous;
  check((synchronous ? MPI_Ssend : MPI_Send)(data.data(), data.count(), data.type(), dst, tag,
                                             handle_of(comm)),
        synchronous ? "MPI_Ssend" : "MPI_Send");
}

RealMpi::Status RealMpi::recv(Comm comm, int src, int tag, const Buffer& buffer) {
  Random random = draw();
  const Typed data(buffer, buffer.count, Choice::any, random);
  if (src == model::kAnySource) src = MPI_ANY_SOURCE;
  const MPI_Comm where = handle_of(comm);
  MPI_Status status;
  int rank = -1;
  check(MPI_Comm_rank(where, &rank), "MPI_Comm_rank");
  const bool may_probe = src != rank || works("probe of a message to oneself");
  if (!may_probe || random.percent(60)) {
    check(MPI_Recv(data.data(), data.count(), data.type(), src, tag, where, &status), "MPI_Recv");
    return converted(status);
  }
  MPI_Message message = MPI_MESSAGE_NULL;
  if (random.percent(50)) {
    check(MPI_Mprobe(src, tag, where, &message, &status), "MPI_Mprobe");
  } else {
    for (int found = 0; found == 0; std::this_thread::yield())
      check(MPI_Improbe(src, tag, where, &found, &message, &status), "MPI_Improbe");
  }
  const Status probed = converted(status);
  if (random.percent(50)) {
    check(MPI_Mrecv(data.data(), data.count(), data.type(), &message, &status), "MPI_Mrecv");
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Imrecv(data.data(), data.count(), data.type(), &message, &request), "MPI_Imrecv");
    check(MPI_Wait(&request, &status), "MPI_Wait");
  }
  const Status result = converted(status);
  if (probed.source != result.source || probed.tag != result.tag ||
      probed.size_bytes != result.size_bytes)
    fail(Symptom::data,
         fmt::format("a matched probe tells of {} bytes from {} with tag {}, its receive of {} "
                     "from {} with {}",
                     probed.size_bytes, probed.source, probed.tag, result.size_bytes, result.source,
                     result.tag));
  model::reached("call", "matched probe");
  return result;
}

RealMpi::Status RealMpi::probe(Comm comm, int src, int tag) {
  MPI_Status status;
  check(MPI_Probe(src, tag, handle_of(comm), &status), "MPI_Probe");
  return converted(status);
}

bool RealMpi::iprobe(Comm comm, int src, int tag, Status& status) {
  MPI_Status found;
  int flag = 0;
  check(MPI_Iprobe(src, tag, handle_of(comm), &flag, &found), "MPI_Iprobe");
  if (flag != 0) status = converted(found);
  return flag != 0;
}

void RealMpi::cancel(Request request) {
  check(MPI_Cancel(&state_of(request).handle), "MPI_Cancel");
}

void RealMpi::start(Request request) {
  State& state = state_of(request);
  draw().percent(70) ? check(MPI_Start(&state.handle), "MPI_Start")
                     : check(MPI_Startall(1, &state.handle), "MPI_Startall");
}

void RealMpi::request_free(Request& request) {
  State& state = state_of(request);
  check(MPI_Request_free(&state.handle), "MPI_Request_free");
  state.persistent = false;
  ended(request);
}

bool RealMpi::get_status(Request request, Status& status) {
  MPI_Status found;
  int flag = 0;
  State& state = state_of(request);
  if (state.persistent && !works("status after Request_get_status")) return false;
  check(MPI_Request_get_status(state.handle, &flag, &found), "MPI_Request_get_status");
  if (flag != 0) status = converted(found);
  return flag != 0;
}

RealMpi::Request RealMpi::collective(model::Form form, Comm comm,
                                     const model::CollectiveArgs& args) {
  CommState& where = comm_state(comm);
  auto state = std::make_unique<State>();
  state->persistent = form == model::Form::persistent;
  state->collective = true;
  if (args.kind == model::Collective::free) {
    // Collectives may be under way; where the MPI minds, it ends with the program.
    if (works("communicator freed while in use")) free_comm(comm);
    return kNoRequest;
  }
  // One thread makes the collectives of a communicator.
  Random shared(where.salt + ++where.collectives * 0x9e3779b97f4a7c15ull);
  if (args.created != nullptr) {
    make_comm(form, where, args, &state->handle);
  } else {
    call_collective(form, where, args, *state, shared);
  }
  return form == model::Form::blocking ? kNoRequest : add(std::move(state));
}

void RealMpi::make_comm(model::Form form, CommState& from, const model::CollectiveArgs& args,
                        MPI_Request* request) {
  Random random = draw();
  if (random.percent(40) && !has_attribute(from.handle)) set_attribute_of_comm(from.handle);
  *args.created =
      add_comm(from.salt * 31 + from.collectives * 7 + static_cast<std::uint64_t>(args.color));
  MPI_Comm& made = comm_state(*args.created).handle;
  if (args.kind == model::Collective::split) {
    check(MPI_Comm_split(from.handle, args.color, 0, &made), "MPI_Comm_split");
  } else if (form == model::Form::blocking) {
    check(MPI_Comm_dup(from.handle, &made), "MPI_Comm_dup");
    if (has_attribute(made) != has_attribute(from.handle))
      fail(Symptom::data, "the attributes of a duplicate are others");
  } else {
    check(MPI_Comm_idup(from.handle, &made, request), "MPI_Comm_idup");
  }
}

}  // namespace accord::programs
