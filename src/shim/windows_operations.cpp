// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided operations: of ours where the target's memory is, else the host MPI's on staged
// buffers.
#include <utility>

#include "shim/canonical.h"
#include "shim/hand_over.h"
#include "shim/type_contents.h"
#include "shim/windows.h"

namespace accord::shim {
namespace {

using Kind = OneSided::Kind;

// The buffers that the program gives, as it owns them: MPI_Get's origin is where it puts things.
Description described(const OneSided& call) {
  Description d;
  if (call.kind == Kind::get) {
    d.recv = Description::buffer(call.origin_addr);
    d.writes(d.recv, call.origin_count, call.origin_datatype);
    return d;
  }
  d.send = Description::buffer(call.origin_addr);
  if (call.op != MPI_NO_OP) d.reads(d.send, call.origin_count, call.origin_datatype);
  if (!call.fetches()) return d;
  d.recv = Description::buffer(call.result_addr);
  d.writes(d.recv, call.result_count, call.result_datatype);
  return d;
}

// By the host MPI, on what has been staged.

class StagedRequest final : public core::Tracked {
 public:
  StagedRequest(MPI_Win win, std::shared_ptr<WindowState> state,
                std::shared_ptr<StagedOperation> operation)
      : state_(std::move(state)), operation_(std::move(operation)), win_(win) {
    context = to_bits(MPI_COMM_SELF);
  }
  Status finish(const core::Completion&) override {
    return Status::from_host(raise_on_window(win_, complete_staged(*state_, {operation_}), site));
  }

 private:
  std::shared_ptr<WindowState> state_;
  std::shared_ptr<StagedOperation> operation_;
  MPI_Win win_;
};

Status stage(const OneSided& call, StagedOperation& staged) {
  Description& d = staged.buffers;
  if (call.kind == Kind::compare_and_swap) {
    staged.compare = Description::buffer(call.compare_addr);
    d.reads(staged.compare, MPI_Count{1}, call.datatype);
    ACCORD_TRY(staged.compare.open());
    ACCORD_TRY(staged.compare.copy_in());
  }
  ACCORD_TRY(d.send.open());
  ACCORD_TRY(d.recv.open(&d.send));
  return d.send.copy_in();
}

std::size_t result_bytes_of(const OneSided& call) {
  const auto type = typemap(call.target_datatype);
  if (!type || call.target_count < 0) return 0;
  return static_cast<std::size_t>(call.target_count) * type->size_bytes();
}

// Until a call completes it: a flush or the end of the epoch does so for operations with requests,
// too. The handle of a request that is complete at birth may be many requests' (MPICH): nothing is
// kept for it.
int keep_staged(MPI_Win win, const std::shared_ptr<StagedOperation>& staged, MPI_Request* request) {
  int done = 0;
  if (request != nullptr)
    if (const int code = host::Request_get_status(*request, &done, MPI_STATUS_IGNORE)) return code;
  if (done != 0) return raise_on_window(win, staged->buffers.recv.copy_out(staged->result_bytes));
  const auto state = windows().find_or_make(win);
  {
    const std::lock_guard<std::mutex> locked(state->mutex);
    state->staged.push_back(staged);
  }
  if (request == nullptr) return MPI_SUCCESS;
  return hand_over(Handle::receive, *request, std::make_shared<StagedRequest>(win, state, staged));
}

int by_host(const OneSided& call, MPI_Win win, MPI_Request* request,
            const OneSidedCall& host_call) {
  const bool reads_result = call.kind == Kind::get;
  const auto as_it_is = [&] {
    return host_call(const_cast<void*>(call.origin_addr), const_cast<void*>(call.compare_addr),
                     call.result_addr);
  };
  if (call.target_rank == MPI_PROC_NULL) return as_it_is();  // nothing is read or written
  const auto staged = std::make_shared<StagedOperation>();
  staged->target = call.target_rank;
  staged->result_bytes = result_bytes_of(call);
  staged->buffers = described(call);
  const Description& d = staged->buffers;
  const bool compares = call.kind == Kind::compare_and_swap && needs_us(call.compare_addr);
  if (!d.valid || (!d.send.is_staged() && !d.recv.is_staged() && !compares)) return as_it_is();
  if (const Status opened = stage(call, *staged); !opened.ok()) return raise_on_window(win, opened);
  coll::set_last_path("staged");
  void* const origin = reads_result ? d.recv.host() : d.send.host();
  void* const compare = call.kind == Kind::compare_and_swap ? staged->compare.host() : nullptr;
  void* const result = call.fetches() ? d.recv.host() : call.result_addr;
  if (const int code = host_call(origin, compare, result); code != MPI_SUCCESS) return code;
  return keep_staged(win, staged, request);
}

// By ours.

// Completes the program's request.
class OneSidedOperation final : public core::Operation {
 public:
  explicit OneSidedOperation(std::shared_ptr<rma::Progress> progress)
      : progress_(std::move(progress)) {}
  Phase advance(core::HostPort&) override {
    return progress_->is_done() ? Phase::done : Phase::issued;
  }

 private:
  std::shared_ptr<rma::Progress> progress_;
};

// Tells of its error.
class OneSidedRequest final : public core::Tracked {
 public:
  OneSidedRequest(MPI_Win win, std::shared_ptr<rma::Progress> progress)
      : progress_(std::move(progress)), win_(win) {
    context = to_bits(MPI_COMM_SELF);
  }
  Status finish(const core::Completion&) override {
    return Status::from_host(raise_on_window(win_, progress_->status, site));
  }

 private:
  std::shared_ptr<rma::Progress> progress_;
  MPI_Win win_;
};

int give_request(MPI_Win win, const std::shared_ptr<rma::Progress>& progress,
                 MPI_Request* request) {
  core::HostRequest bits = 0;
  const auto operation = std::make_shared<OneSidedOperation>(progress);
  if (const Status promised = engine().promise(*operation, bits); !promised.ok())
    return raise_on_window(win, promised);
  const bool may_fail = !progress->is_done() || !progress->status.ok();
  *request = from_bits<MPI_Request>(bits);
  if (may_fail) requests().track(bits, std::make_shared<OneSidedRequest>(win, progress));
  engine().submit(operation, nullptr);
  return MPI_SUCCESS;
}

rma::Place place_of(const void* user) {
  if (user == MPI_BOTTOM) {
    device::order_behind_program();
    return rma::Place::absolute();
  }
  auto* const start = static_cast<std::byte*>(const_cast<void*>(user));
  return {.start = start, .where = device::classify_argument(user)};
}

// False: an argument is wrong, which the host MPI shall report.
bool end_of(const void* user, MPI_Count count, MPI_Datatype datatype, rma::End& end) {
  const auto type = typemap(datatype);
  if (!type || count < 0) return false;
  end.place = place_of(user);
  end.layout = {type, static_cast<std::size_t>(count), 0};
  end.pieces = rma::pieces_of(end.layout);
  return true;
}

// The predefined type that a type is made of; any of them where it is made of several.
MPI_Datatype element_of(MPI_Datatype datatype) {
  if (is_predefined(combiner_of(datatype))) return datatype;
  const TypeContents contents(datatype);
  for (const MPI_Datatype part : contents.types()) {
    int size_bytes = 0;
    if (host::Type_size(part, &size_bytes) == MPI_SUCCESS && size_bytes > 0)
      return element_of(part);
  }
  return MPI_DATATYPE_NULL;
}

bool update_of(const OneSided& call, rma::Update& update) {
  const MPI_Datatype element = element_of(call.target_datatype);
  const auto type = typemap(element);
  if (!type || type->size_bytes() == 0) return false;
  // Without padding that the host MPI does not move.
  update.element_bytes = static_cast<std::uint32_t>(rma::size_of(rma::pieces_of({type, 1, 0})));
  update.type = number_of_element(element);
  if (call.op == MPI_REPLACE) {
    update.op = rma::Update::kReplace;
  } else if (call.op == MPI_NO_OP) {
    update.op = rma::Update::kNoOp;
  } else {
    update.op = canonical_op(call.op);
    update.device_op = device_op(call.op);
    update.element = device_element(update.device_op, element, type->size_bytes());
    return update.op != 0 && takes_operation(type_of_number(update.type), call.op);
  }
  return true;
}

Status too_long() {
  return {StatusCode::truncated, "more bytes than the other buffer has room for"};
}

// What one operation comes to.
struct Ends {
  rma::End origin;
  rma::End compare;
  rma::End result;
  rma::Extent target;
  rma::Update update;
};

bool ends_of(const OneSided& call, const rma::Window& window, Ends& ends) {
  const auto type = typemap(call.target_datatype);
  if (!type || call.target_count < 0) return false;
  const bool is_dynamic = window.is_dynamic();
  const std::int64_t shift =
      call.target_disp * (is_dynamic ? 1 : window.unit_bytes(call.target_rank));
  ends.target.layout = {type, static_cast<std::size_t>(call.target_count),
                        static_cast<std::ptrdiff_t>(shift)};
  ends.target.pieces = rma::pieces_of(ends.target.layout);
  const bool has_origin = call.op != MPI_NO_OP;
  if (has_origin && !end_of(call.origin_addr, call.origin_count, call.origin_datatype, ends.origin))
    return false;
  if (call.fetches() &&
      !end_of(call.result_addr, call.result_count, call.result_datatype, ends.result))
    return false;
  switch (call.kind) {
    case Kind::put:
    case Kind::get:
      return true;
    case Kind::compare_and_swap:
      return end_of(call.compare_addr, 1, call.datatype, ends.compare);
    default:
      return ends.target.pieces.empty() || update_of(call, ends.update);
  }
}

Status start(const OneSided& call, rma::Window& window, Ends& ends,
             const rma::Window::ProgressPointer& progress) {
  const int target = call.target_rank;
  const std::uint64_t target_bytes = rma::size_of(ends.target.pieces);
  const std::uint64_t origin_bytes = rma::size_of(ends.origin.pieces);
  const bool reads = call.op != MPI_NO_OP;
  if (call.kind == Kind::get ? target_bytes > origin_bytes : reads && origin_bytes > target_bytes)
    return too_long();
  if (call.fetches() && target_bytes > rma::size_of(ends.result.pieces)) return too_long();
  if (target_bytes == 0) return {};
  if (call.kind != Kind::get && reads && origin_bytes < target_bytes)
    ends.target.pieces = rma::slice(ends.target.pieces, 0, origin_bytes);
  switch (call.kind) {
    case Kind::put:
      return window.put(target, ends.target, ends.origin, progress);
    case Kind::get:
      return window.get(target, ends.target, ends.origin, progress);
    case Kind::compare_and_swap:
      return window.compare_and_swap(target, ends.target.pieces.front(), ends.origin, ends.compare,
                                     ends.result);
    default:
      return window.update(target, ends.update, ends.target.pieces, ends.origin,
                           call.fetches() ? &ends.result : nullptr, progress);
  }
}

const char* path_of(const OneSided& call, rma::Window& window, const Ends& ends) {
  const int target = call.target_rank;
  if (window.route_to(target, ends.target.pieces) == rma::Route::direct) return "window-direct";
  const bool may_be_transported = call.kind == Kind::put || call.kind == Kind::get;
  return may_be_transported && window.is_transported(target, ends.target, ends.origin)
             ? "window-network"
             : "window-messages";
}

}  // namespace

StagedOperations staged_for(WindowState& state, int target) {
  const std::lock_guard<std::mutex> locked(state.mutex);
  StagedOperations found;
  for (const auto& one : state.staged)
    if (target == kAllTargets || one->target == target) found.push_back(one);
  return found;
}

// Under the lock: whoever finds one copied may use the buffer.
Status complete_staged(WindowState& state, const StagedOperations& operations) {
  const std::lock_guard<std::mutex> locked(state.mutex);
  Status first;
  for (const auto& one : operations)
    if (!std::exchange(one->is_copied, true))
      keep_first(first, one->buffers.recv.copy_out(one->result_bytes));
  std::erase_if(state.staged, [](const auto& one) { return one->is_copied; });
  return first;
}

int carry_out(const char* name, const OneSided& given, MPI_Win win, MPI_Request* request,
              const OneSidedCall& host_call) {
  const OneSided call = given.complete();
  const core::CallScope scope(name, {"origin_addr", call.origin_addr},
                              call.result_addr != nullptr
                                  ? core::CallSite::Argument{"result_addr", call.result_addr}
                                  : core::CallSite::Argument());
  if (!engine().idle()) engine().progress();
  const auto state = windows().find(win);
  if (state == nullptr || state->ours == nullptr) return by_host(call, win, request, host_call);
  rma::Window& window = *state->ours;
  int size = 0;
  (void)host::Comm_size(state->comm, &size);
  const bool is_rank = call.target_rank >= 0 && call.target_rank < size;
  const auto progress = request != nullptr ? std::make_shared<rma::Progress>() : nullptr;
  if (call.target_rank == MPI_PROC_NULL)
    return request != nullptr ? give_request(win, progress, request) : MPI_SUCCESS;
  if (!is_rank || window.route(call.target_rank) == rma::Route::host ||
      (window.is_mixed() && !window.has_devices_at(call.target_rank)))
    return by_host(call, win, request, host_call);
  Ends ends;
  if (!ends_of(call, window, ends)) return by_host(call, win, request, host_call);
  if (window.is_mixed() && !window.is_on_device(call.target_rank, ends.target.pieces))
    return by_host(call, win, request, host_call);
  coll::set_last_path(path_of(call, window, ends));
  if (const Status started = start(call, window, ends, progress); !started.ok())
    return raise_on_window(win, started);
  return request != nullptr ? give_request(win, progress, request) : MPI_SUCCESS;
}

}  // namespace accord::shim
