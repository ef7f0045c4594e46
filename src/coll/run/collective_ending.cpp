// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a call ends early: by an error of this rank's, or since its ranks make different calls, or
// some have left.
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "coll/run/collective_operation.h"

namespace accord::coll {

// Calls that differ are the host MPI's to tell of, where it has the whole of this one.
bool CollectiveOperation::is_in_vain() const {
  return stage_ != Stage::whole_in_host || comm_->watch.look(call_.entry).has_left;
}

// Whether the ranks have turned out to make different calls. What the host MPI has begun of this
// one then may end at any time, or never: it keeps its memory for good.
bool CollectiveOperation::has_parted() {
  difference_ = comm_->watch.look(call_.entry);
  if (!difference_.any()) return false;
  if (difference_.has_left)
    comm_->watch.leave(call_.entry);
  else
    comm_->watch.break_up();
  // Alike, but for what became of earlier ones: nothing is wrong yet where no data has moved.
  if (difference_.status.ok() && stage_ != Stage::voting)
    difference_.status = {
        StatusCode::mismatch,
        "the ranks of this communicator go different ways since an earlier error"};
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::shared_ptr<core::Operation>>;
  const std::lock_guard lock(mutex);
  kept.push_back(shared_from_this());
  return true;
}

// Whether the host MPI would match later calls of this rank with what its peers wait for in this
// one. That the ranks' calls differ is known to all from the vote.
bool CollectiveOperation::owes_host_calls() const noexcept {
  switch (stage_) {
    case Stage::begin:
    case Stage::joining:
    case Stage::agreeing:
    case Stage::whole:
      return true;
    case Stage::voting:
      return status_.code() != StatusCode::mismatch;
    case Stage::chunks:
      return next_issue_ < chunks_;
    default:
      return false;
  }
}

// What the host MPI says of the program's own call all ranks may hear alike, of a wrong argument,
// and go on: then only what the program has called meanwhile has no place any more.
void CollectiveOperation::lag_behind() noexcept {
  core::CallWatch& watch = comm_->watch;
  const bool is_refused = stage_ == Stage::whole && status_.code() == StatusCode::host_mpi;
  const bool is_behind = stage_ == Stage::begin && watch.refuses() && !watch.has_left();
  if (form_ == Form::nonblocking && (is_refused || is_behind)) {
    is_untold_ = true;
    watch.expect_telling();
  } else {
    watch.leave(call_.entry);
  }
}

// What has thrown was a call of the host MPI, and the program knows. Of its own call as soon as it
// would without us.
void CollectiveOperation::abandon() noexcept {
  if (owes_host_calls() && stage_ != Stage::whole) comm_->watch.leave(call_.entry);
}

// After an error of ours nothing more is issued (going on would hand the peers wrong data as a
// success), but shadows that a copy or the host MPI still works on must outlive that work.
core::Operation::Phase CollectiveOperation::stop(core::HostPort& port, Status status) {
  const bool is_told = status.code() == StatusCode::host_mpi;  // by the host MPI
  if (!status.ok() && stage_ != Stage::stopping && !difference_.any()) (void)has_parted();
  const bool has_difference = difference_.any();
  if (!is_told) keep_first(status_, difference_.status);
  keep_first(status_, std::move(status));
  const bool follows = difference_.by_host && !is_told;
  if (!follows && difference_.status.ok() && owes_host_calls()) lag_behind();
  stage_ = Stage::stopping;
  explain(*queue_, status_);
  bool all_done = true;
  if (exchange_) exchange_->stop(all_done);
  for (Slot& slot : slots_) {
    bool done = true;
    Status polled;
    if (slot.state == Slot::State::in_host && !has_difference) {
      done = false;
      polled = port.test(slot.request, done);
    }
    if (slot.state == Slot::State::copying_in) polled = call_.args->in.copied(slot.ticket, done);
    if (slot.state == Slot::State::copying_out) polled = call_.args->out.copied(slot.ticket, done);
    if (done || !polled.ok()) slot.state = Slot::State::empty;
    all_done = all_done && slot.state == Slot::State::empty;
  }
  if (!all_done) return Phase::issued;
  return difference_.by_host && !std::exchange(follows_, true) ? follow(port) : Phase::done;
}

// Peers are inside the host MPI: it is for it to say what becomes of their call.
core::Operation::Phase CollectiveOperation::follow(core::HostPort& port) {
  if (status_.code() == StatusCode::host_mpi) return Phase::done;
  status_ = {};
  stage_ = Stage::whole;
  exchange_.reset();
  return form_ == Form::nonblocking ? advance(port) : Phase::done;
}

}  // namespace accord::coll
