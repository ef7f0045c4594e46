// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/intra/joining.h"

#include <algorithm>
#include <cstdint>

#include "base/log.h"
#include "coll/select/reasons.h"
#include "device/registry.h"

namespace accord::coll {

Joining::Joining(core::NodeGroup& group, const CollArgs& args, node::Use use,
                 const core::Placement* placement)
    : joined_(group),
      args_(args),
      use_(use),
      placement_(placement),
      // A group's memory goes only when the peers have closed it.
      group_(new node::Group, node::Group::retire),
      records_(static_cast<std::size_t>(args.exchange->size)) {}

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
  int rank = args_.rank;
  int size = args_.exchange->size;
  if (placement_ != nullptr) {
    size = static_cast<int>(placement_->beside(rank).size());
    rank = placement_->local_rank(rank);
  }
  Status made = group_->prepare(rank, size, *runtime, device, use_, record_);
  if (made.ok() && placement_ != nullptr && core::Wire::exhausted()) {
    made = {StatusCode::unsupported, "nodes: too many communicators go in two levels"};
    record_.ok = 0;
  }
  if (!made.ok()) log::info("{}", made.message());
  if (!grows()) joined_.why_declined = made.message();
  joined_.asked_bytes = std::max({joined_.asked_bytes, use_.region_bytes, use_.lane_bytes});
  return Status::from_host(
      args_.host.issue_allgather(&record_, records_.data(), sizeof record_, request_));
}

Status Joining::advance(core::HostPort& port, bool& done) {
  done = false;
  if (step_ == Step::sending) return send();
  bool arrived = false;
  ACCORD_TRY(port.test(request_, arrived));
  if (arrived) return step(done);
  if (step_ == Step::sent) group_->receive();
  return {};
}

// What follows from what all ranks have said.
Status Joining::step(bool& done) {
  const bool all_could = step_ == Step::records || !all_.any_host();
  if (step_ == Step::records) {
    const Status accepted = accept();
    if (accepted.ok()) {
      step_ = Step::sending;
      return send();
    }
    const bool apart = placement_ == nullptr && joined_.placement.nodes() > 1;
    if (!apart && !grows() && node::Group::too_early(records_) &&
        ++joined_.early_attempts < kEarlyAttemptsMax) {
      joined_.why_declined = reason::kTooEarly;
    } else {
      decline(accepted.message());
    }
  } else if (step_ == Step::sent && all_could) {
    return vote(group_->open(), Step::opened);
  } else if (step_ == Step::opened && !all_could) {
    return vote(group_->close_peers(), Step::closed);
  } else if (step_ == Step::opened) {
    if (!grows() || group_->has_more_memory_than(*joined_.group)) joined_.group = group_;
  } else {
    // Else the memory stays, as that of a rank that has died.
    if (step_ != Step::closed || all_could) group_->parted();
    joined_.declined = !grows();
    if (joined_.declined && joined_.why_declined.empty())
      joined_.why_declined = reason::kPeerDeclined;
  }
  group_.reset();
  done = true;
  return {};
}

// The same answer on all ranks, whichever node they are on.
Status Joining::accept() {
  joined_.placement = core::Placement::of(std::span<const node::Record>(records_));
  joined_.reduce = std::ranges::all_of(records_, [](const auto& one) { return one.reduces != 0; });
  if (placement_ == nullptr) return group_->accept(records_);
  if (!std::ranges::all_of(records_, [](const auto& one) { return one.ok != 0; }))
    return {StatusCode::unsupported, "node: a rank cannot take part"};
  std::vector<node::Record> here;
  for (const int rank : placement_->beside(args_.rank))
    here.push_back(records_[static_cast<std::size_t>(rank)]);
  return group_->accept(here);
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
