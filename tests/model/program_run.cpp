// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "program_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "named_reach.h"

namespace accord::model {
static std::size_t count_slots(const Program& program) {
  std::size_t slots = 0;
  for (const Event& event : program.events)
    slots += event.parts.size() * static_cast<std::size_t>(event.rounds);
  return slots;
}

Run::Run(const Program& program, RunHost& host, bool on_devices, bool notes)
    : program_(program),
      host_(host),
      on_devices_(on_devices),
      notes_(notes),
      progress_(count_slots(program)),
      opened_(static_cast<std::size_t>(program.ranks)),
      ended_(static_cast<std::size_t>(program.ranks)),
      position_(program.lists.size()) {
  std::size_t slots = 0;
  for (const Event& event : program.events) {
    first_slot_.push_back(slots);
    slots += event.parts.size() * static_cast<std::size_t>(event.rounds);
  }
  for (int rank = 0; rank < program.ranks; ++rank)
    pools_.push_back(std::make_unique<BufferPool>(
        [this](std::uint64_t bound) { return host_.random(bound); },
        [this](const std::string& what) { host_.fail(what); }, program.churn_percent));
  comms_.assign(static_cast<std::size_t>(program.ranks),
                std::vector<Comm>(program.comms.size(), kNoComm));
  for (auto& of_rank : comms_) of_rank[0] = kWorld;
}

std::string Run::describe(std::size_t index) const {
  const auto threads = static_cast<std::size_t>(program_.threads);
  const auto& list = program_.lists[index];
  const std::size_t at = position_[index].load();
  const std::string what = at < list.size() ? to_text(program_, list[at]) : "at its end";
  return fmt::format("rank {} thread {}: {}", index / threads, index % threads, what);
}

bool Run::run_thread(std::size_t index, long actions_max) {
  const auto threads = static_cast<std::size_t>(program_.threads);
  const std::size_t rank = index / threads;
  UserMpi& mpi = host_.user(static_cast<int>(rank));
  for (const Action& action : program_.lists[index]) {
    host_.yield();
    if (static_cast<long>(position_[index].load()) >= actions_max) return false;
    perform(mpi, static_cast<int>(rank), action);
    position_[index].fetch_add(1);
    host_.event();
  }
  if (index % threads != 0) {
    ended_[rank].fetch_add(1);
    return true;
  }
  while (ended_[rank].load() < program_.threads - 1) host_.yield();
  return true;
}

void Run::drop_buffers() {
  progress_.clear();
  pools_.clear();
}

void Run::perform(UserMpi& mpi, int rank, const Action& action) {
  using Verb = Action::Verb;
  const auto owner = static_cast<std::size_t>(rank);
  if (notes_) note(action);
  switch (action.verb) {
    case Verb::open:
      opened_[owner].store(true);
      return;
    case Verb::await:
      while (!opened_[owner].load()) host_.yield();
      return;
    case Verb::probe:
    case Verb::iprobe:
      return probe(mpi, action);
    case Verb::start:
      return start(mpi, action.refs.front());
    case Verb::block:
      return block(mpi, action.refs.front());
    case Verb::release:
      return release(mpi, action.refs.front());
    case Verb::cancel:
      return mpi.cancel(call(action.refs.front()).request);
    case Verb::init: {
      const Ref& ref = action.refs.front();
      Call& made = call(ref);
      make_buffers(ref, made);
      const Event& what = event(ref);
      const Comm where = comm(rank, what.comm);
      if (what.kind == Event::Kind::collective) {
        made.request = mpi.collective(Form::persistent, where, arguments(ref, made));
      } else if (what.receives(static_cast<std::size_t>(ref.part))) {
        made.request = mpi.recv_init(where, rank_in(what.comm, what.parts[0].rank), what.tag,
                                     made.recv->argument());
      } else {
        made.request = mpi.send_init(
            where, rank_in(what.comm, what.parts[1].rank), what.tag, made.send->argument(),
            what.synchronous ? UserMpi::Send::synchronous : UserMpi::Send::standard);
      }
      return;
    }
    default:
      return complete_many(mpi, action);
  }
}

// For the report of what is reached.
void Run::note(const Action& action) const {
  reached("verb", name_of(action.verb));
  if (action.refs.empty()) return;
  const Event& what = event(action.refs.front());
  const bool starts = action.verb == Action::Verb::start || action.verb == Action::Verb::block;
  if (what.kind != Event::Kind::collective || !starts) return;
  const Form form = what.persistent                      ? Form::persistent
                    : action.verb == Action::Verb::block ? Form::blocking
                                                         : Form::nonblocking;
  reached(name_of(form), name_of(what.collective));
}

int Run::rank_in(int comm, int world_rank) const {
  const auto& members = program_.comms[static_cast<std::size_t>(comm)];
  return static_cast<int>(std::find(members.begin(), members.end(), world_rank) - members.begin());
}

std::string Run::complaint(const Ref& ref, const std::string& what) const {
  return fmt::format("rank {}, event e{} round {}: {}", part(ref).rank, ref.event, ref.round, what);
}

void Run::start(UserMpi& mpi, const Ref& ref) {
  prepare(ref);
  Call& made = call(ref);
  const Event& what = event(ref);
  const Comm where = comm(part(ref).rank, what.comm);
  if (persistent(ref)) {
    mpi.start(made.request);
  } else if (what.kind == Event::Kind::collective) {
    made.request = mpi.collective(Form::nonblocking, where, arguments(ref, made));
  } else if (what.receives(static_cast<std::size_t>(ref.part))) {
    const int from =
        what.kind == Event::Kind::message ? rank_in(what.comm, what.parts[0].rank) : kAnySource;
    made.request = mpi.irecv(where, from, what.tag, made.recv->argument());
  } else {
    made.request = mpi.isend(
        where, rank_in(what.comm, what.parts[what.senders()].rank), what.tag, made.send->argument(),
        what.synchronous ? UserMpi::Send::synchronous : UserMpi::Send::standard);
  }
  progress(ref).started.store(true);
}

void Run::block(UserMpi& mpi, const Ref& ref) {
  prepare(ref);
  Call& made = call(ref);
  const Event& what = event(ref);
  const Comm where = comm(part(ref).rank, what.comm);
  MessageStatus status;
  if (what.kind == Event::Kind::collective) {
    (void)mpi.collective(Form::blocking, where, arguments(ref, made));
  } else if (what.receives(static_cast<std::size_t>(ref.part))) {
    const int from =
        what.kind == Event::Kind::message ? rank_in(what.comm, what.parts[0].rank) : kAnySource;
    status = mpi.recv(where, from, what.tag, made.recv->argument());
  } else {
    mpi.send(where, rank_in(what.comm, what.parts[what.senders()].rank), what.tag,
             made.send->argument(),
             what.synchronous ? UserMpi::Send::synchronous : UserMpi::Send::standard);
  }
  progress(ref).started.store(true);
  completed(ref, status);
}

void Run::release(UserMpi& mpi, const Ref& ref) {
  Progress& state = progress(ref);
  if (!persistent(ref) && state.done) return;
  state.freed = !state.done;
  mpi.request_free(call(ref).request);
}

void Run::await_start(const Ref& ref) {
  while (!progress(ref).started.load()) host_.yield();
}

void Run::complete_many(UserMpi& mpi, const Action& action) {
  using Verb = Action::Verb;
  std::vector<Ref> refs;
  std::vector<Request> requests;
  std::vector<MessageStatus> statuses;
  for (const Ref& ref : action.refs) {
    await_start(ref);
    if (progress(ref).done || progress(ref).freed) continue;
    refs.push_back(ref);
    requests.push_back(call(ref).request);
  }
  if (refs.empty()) return;
  std::vector<std::size_t> finished;
  MessageStatus status;
  if (action.verb == Verb::status) {
    (void)mpi.get_status(requests[0], status);
    return;
  }
  if (action.verb == Verb::wait || action.verb == Verb::test) {
    statuses.resize(1);
    bool done = true;
    action.verb == Verb::wait ? mpi.wait(requests[0], statuses[0])
                              : void(done = mpi.test(requests[0], statuses[0]));
    if (done) finished.push_back(0);
  } else if (action.verb == Verb::wait_any) {
    const int index = mpi.wait_any(requests, status);
    statuses.resize(refs.size());
    if (index == kUndefined) complain(refs[0], "MPI_Waitany found no active request");
    finished.push_back(static_cast<std::size_t>(index));
    statuses[finished[0]] = status;
  } else if (action.verb == Verb::wait_some) {
    std::vector<MessageStatus> some;
    const std::vector<int> indices = mpi.wait_some(requests, some);
    statuses.resize(refs.size());
    if (indices.empty()) complain(refs[0], "MPI_Waitsome found no active request");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      finished.push_back(static_cast<std::size_t>(indices[i]));
      statuses[finished.back()] = some[i];
    }
  } else {
    bool done = true;
    action.verb == Verb::wait_all ? mpi.wait_all(requests, statuses)
                                  : void(done = mpi.test_all(requests, statuses));
    for (std::size_t i = 0; i < refs.size() && done; ++i) finished.push_back(i);
  }
  for (std::size_t i = 0; i < refs.size(); ++i) call(refs[i]).request = requests[i];
  for (const std::size_t i : finished) completed(refs[i], statuses[i]);
}

void Run::probe(UserMpi& mpi, const Action& action) {
  const Ref& ref = action.refs.front();
  const Event& what = event(ref);
  const Comm where = comm(part(ref).rank, what.comm);
  const int from = rank_in(what.comm, what.parts[0].rank);
  MessageStatus status;
  if (action.verb == Action::Verb::probe) {
    status = mpi.probe(where, from, what.tag);
  } else {
    while (!mpi.iprobe(where, from, what.tag, status)) host_.yield();
  }
  if (status.source != from || status.size_bytes != what.elements * sizeof(std::int64_t)) {
    complain(ref, fmt::format("the probe's status tells source {}, {} bytes", status.source,
                              status.size_bytes));
  }
}

}  // namespace accord::model
