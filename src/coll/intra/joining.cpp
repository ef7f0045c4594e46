// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/intra/joining.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "coll/select/reasons.h"
#include "coll/tags.h"
#include "device/registry.h"

namespace accord::coll {

Joining::Joining(core::NodeGroup& group, const CollArgs& args, node::Use use,
                 std::optional<Nodes> nodes)
    : joined_(group),
      args_(args),
      use_(use),
      nodes_(std::move(nodes)),
      // A group's memory goes only when the peers have closed it.
      group_(new node::Group, node::Group::retire) {}

// Nobody reads what still comes.
Joining::~Joining() {
  for (Letter& letter : letters_)
    if (letter.received != nullptr) nodes_->wire->cancel(letter.request);
}

// A rank's memory is where its buffer is; where that is on the host, on the device that the rank
// uses for something else. To take one that it does not use would cost its memory for nothing, of
// the same device for all ranks that only use the CPU.
Status Joining::begin() {
  const core::CallEnd& end = args_.in.runtime != nullptr ? args_.in : args_.out;
  device::DeviceRuntime* runtime = end.runtime != nullptr ? end.runtime : args_.region_runtime;
  if (runtime == nullptr) runtime = &device::default_runtime();
  int device = end.runtime != nullptr ? end.device : runtime->device_in_use();
  if (grows()) {  // where the rank's memory is already
    runtime = &joined_.group->runtime();
    device = joined_.group->device();
  }
  records_.resize(nodes_ ? nodes_->placement.beside(args_.rank).size()
                         : static_cast<std::size_t>(args_.exchange->size));
  const int rank = nodes_ ? nodes_->placement.local_rank(args_.rank) : args_.rank;
  const Status made =
      group_->prepare(rank, static_cast<int>(records_.size()), *runtime, device, use_, record_);
  if (!made.ok()) log::info("{}", made.message());
  if (!grows()) joined_.why_declined = made.message();
  joined_.asked_bytes = std::max({joined_.asked_bytes, use_.region_bytes, use_.lane_bytes});
  if (nodes_) return exchange_with_node();
  return Status::from_host(
      args_.host.issue_allgather(&record_, records_.data(), sizeof record_, request_));
}

// Receives first, so that what arrives at once finds its place.
Status Joining::exchange_with_node() {
  step_ = Step::of_node;
  const std::span<const int> ranks = nodes_->placement.beside(args_.rank);
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    if (ranks[local] == args_.rank) {
      records_[local] = record_;
      continue;
    }
    Letter letter{.received = &records_[local]};
    ACCORD_TRY(nodes_->wire->receive(ranks[local], kJoinTag, letter.received, sizeof record_,
                                     letter.request));
    letters_.push_back(letter);
  }
  for (const int rank : ranks) {
    if (rank == args_.rank) continue;
    Letter letter;
    ACCORD_TRY(nodes_->wire->send(rank, kJoinTag, &record_, sizeof record_, letter.request));
    letters_.push_back(letter);
  }
  return {};
}

// A record that is not whole is one of a rank that cannot take part.
Status Joining::poll_letters(bool& done) {
  while (!letters_.empty()) {
    Letter& last = letters_.back();
    core::Completion completion;
    ACCORD_TRY(nodes_->wire->test(last.request, done, completion));
    if (!done) return {};
    if (last.received != nullptr && completion.received_bytes != sizeof record_)
      *last.received = {};
    letters_.pop_back();
  }
  done = true;
  return {};
}

// In the words of a vote, of which all get the least.
Status Joining::tell_outcome() {
  accepted_ = accept();
  const Outcome outcome = accepted_.ok()                     ? Outcome::accepted
                          : node::Group::too_early(records_) ? Outcome::too_early
                                                             : Outcome::refused;
  mine_ = {};
  mine_.words = {static_cast<std::int64_t>(outcome), joined_.reduce ? 1 : 0,
                 group_->shares_device() ? 0 : 1, 0};
  step_ = Step::accepted;
  return Status::from_host(args_.host.issue_vote(mine_, all_, request_));
}

Joining::Outcome Joining::outcome_of_all() {
  joined_.reduce = all_.words[1] != 0;
  nodes_->placement.shares_devices = all_.words[2] == 0;
  joined_.placement = nodes_->placement;
  return static_cast<Outcome>(all_.words[0]);
}

Status Joining::advance(core::HostPort& port, bool& done) {
  done = false;
  if (step_ == Step::sending) return send();
  bool arrived = false;
  if (step_ == Step::of_node) {
    ACCORD_TRY(poll_letters(arrived));
    return arrived ? tell_outcome() : Status();
  }
  ACCORD_TRY(port.test(request_, arrived));
  if (arrived) return step(done);
  if (step_ == Step::sent) group_->receive();
  return {};
}

// What follows from what all ranks have said.
Status Joining::step(bool& done) {
  if (step_ == Step::records) {
    const Status accepted = accept();
    const bool apart = joined_.placement.nodes() > 1;
    const bool too_early = !apart && node::Group::too_early(records_);
    return step_on(accepted.ok() ? Outcome::accepted
                   : too_early   ? Outcome::too_early
                                 : Outcome::refused,
                   accepted.message(), done);
  }
  if (step_ == Step::accepted)
    return step_on(outcome_of_all(),
                   accepted_.ok() ? "node: a rank cannot take part" : accepted_.message(), done);
  const bool all_could = !all_.any_host();
  if (step_ == Step::sent && all_could) return vote(group_->open(), Step::opened);
  if (step_ == Step::opened && !all_could) return vote(group_->close_peers(), Step::closed);
  if (step_ == Step::opened) {
    if (!grows() || group_->has_more_memory_than(*joined_.group)) joined_.group = group_;
  } else {
    // Else the memory stays, as that of a rank that has died.
    if (step_ != Step::closed || all_could) group_->parted();
    joined_.declined = !grows();
    if (joined_.declined && joined_.why_declined.empty())
      joined_.why_declined = reason::kPeerDeclined;
  }
  end(done);
  return {};
}

// The same on all ranks.
Status Joining::step_on(Outcome outcome, const std::string& why, bool& done) {
  if (outcome == Outcome::accepted) {
    step_ = Step::sending;
    return send();
  }
  if (outcome == Outcome::too_early && !grows() && ++joined_.early_attempts < kEarlyAttemptsMax)
    joined_.why_declined = reason::kTooEarly;
  else
    decline(why);
  end(done);
  return {};
}

void Joining::end(bool& done) {
  group_.reset();
  done = true;
}

// The same answer on all ranks that have these records.
Status Joining::accept() {
  joined_.reduce = std::ranges::all_of(records_, [](const auto& one) { return one.reduces != 0; });
  if (!nodes_) joined_.placement = core::Placement::of(std::span<const node::Record>(records_));
  return group_->accept(records_);
}

Status Joining::send() {
  bool all_sent = false;
  const Status status = group_->send(all_sent);
  return status.ok() && !all_sent ? Status() : vote(status, Step::sent);
}

Status Joining::vote(const Status& mine, Step step) {
  if (!mine.ok()) decline(mine.message());
  mine_ = core::Vote::cast(args_.key, mine.ok() ? core::Ballot::neutral : core::Ballot::host);
  step_ = step;
  return Status::from_host(args_.host.issue_vote(mine_, all_, request_));
}

void Joining::decline(const std::string& why) {
  if (grows()) return;
  log::info("staging through the host: {}", why);
  joined_.declined = true;
  if (joined_.why_declined.empty()) joined_.why_declined = why;
}

}  // namespace accord::coll
