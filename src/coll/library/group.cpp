// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/group.h"

#include <algorithm>
#include <bit>
#include <system_error>
#include <thread>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "coll/library/far_turn.h"

namespace accord::coll {

CclGroup& ccl_group_of(core::Team& team, ccl::Library& library) {
  const auto known = std::ranges::find_if(
      team.libraries, [&](const auto& group) { return &group->library == &library; });
  if (known != team.libraries.end()) return **known;
  return *team.libraries.emplace_back(std::make_shared<CclGroup>(library));
}

CclGroup::~CclGroup() {
  if (!node.group) return;
  device::DeviceRuntime& runtime = mailboxes().runtime();
  const auto leave = [this] {
    replays.reset();
    communicator.reset();
    return Status();
  };
  if (communicator) (void)runtime.run_on(mailboxes().device(), leave);
  if (scratch_ != nullptr) (void)runtime.free(scratch_);
}

CclGroup* CclGroup::to_join() {
  if (joined() || declined) return nullptr;
  if (lender_ == nullptr) return this;
  if (lender_->joined()) {
    if (!lender_->is_across_nodes()) return this;
    share();
    return nullptr;
  }
  if (!lender_->declined) return lender_;
  declined = true;
  why_declined = lender_->why_declined;
  return nullptr;
}

// Among nodes it takes no mailboxes of its own, only a channel.
void CclGroup::share() {
  communicator = lender_->communicator;
  stream = lender_->stream;
  number = lender_->number + 2 * ++lender_->borrowers_;
  if (lender_->is_across_nodes()) {
    constexpr std::uint64_t kChannels = 30000;
    const auto channel = static_cast<int>(lender_->borrowers_ % kChannels) + 2;
    node.group = lender_->node.group;
    alarm_ = lender_->alarm_;
    roll_call_ =
        std::make_unique<CclRollCall>(lender_->wire_, lender_->rank(), lender_->size(), channel);
  }
  allow_replays();
  lender_ = nullptr;
}

void CclGroup::connect_nodes(std::shared_ptr<core::Wire> wire, int rank, int size) {
  constexpr int kOwnChannel = 1;
  alarm_ = std::make_shared<CclAlarm>(wire, rank, size);
  roll_call_ = std::make_unique<CclRollCall>(wire, rank, size, kOwnChannel);
  wire_ = std::move(wire);
}

std::unique_ptr<CclTurn> CclGroup::make_turn(CclTurn::Company company, CclTurn::Process process) {
  if (roll_call_) return std::make_unique<CclFarTurn>(*roll_call_, number, company, process);
  return std::make_unique<CclNodeTurn>(mailboxes(), number, company, process);
}

// A parcel's lane is not used here.
void CclGroup::tell(int peer, const CclWords& words) {
  if (roll_call_) {
    roll_call_->tell(peer, words);
    return;
  }
  node::Parcel& parcel = mailboxes().parcel(mailboxes().rank(), peer);
  parcel.size_bytes = words[0];
  parcel.lane_bytes = words[1];
}

CclWords CclGroup::told_by(int peer) const {
  if (roll_call_) return roll_call_->told_by(peer);
  const node::Parcel& parcel = mailboxes().parcel(peer, mailboxes().rank());
  return {parcel.size_bytes, parcel.lane_bytes};
}

Status CclGroup::check_peers() {
  // The alarm first: it has the communicator's own numbers of ranks.
  if (roll_call_) {
    ACCORD_TRY(alarm_->check());
    ACCORD_TRY(roll_call_->status());
  }
  return mailboxes().check_peers();
}

bool CclGroup::has_failed_peer() {
  node::Group& peers = mailboxes();
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peers.mailbox(peer).failed.load(std::memory_order_acquire) != 0) return true;
  }
  return alarm_ && !alarm_->check().ok();
}

void CclGroup::say_failed() noexcept {
  mailboxes().own_mailbox().failed.store(1, std::memory_order_release);
  if (alarm_) alarm_->ring();
}

Status CclGroup::scratch(std::size_t size_bytes, std::byte*& memory) {
  if (scratch_bytes_ < size_bytes) {
    device::DeviceRuntime& runtime = mailboxes().runtime();
    if (scratch_ != nullptr) ACCORD_TRY(runtime.free(scratch_));
    scratch_ = nullptr;
    scratch_bytes_ = 0;
    void* fresh = nullptr;
    const std::size_t fresh_bytes = std::bit_ceil(size_bytes);
    ACCORD_TRY(
        runtime.allocate(mailboxes().device(), device::MemoryKind::device, fresh_bytes, fresh));
    scratch_ = static_cast<std::byte*>(fresh);
    scratch_bytes_ = fresh_bytes;
  }
  memory = scratch_;
  return {};
}

void CclGroup::allow_replays() {
  if (config().ccl_graph_bytes != 0 && library.can_be_recorded())
    replays = std::make_unique<CclReplays>();
}

// A library may not come back from that, so nobody waits for it. NCCL waits for what was recorded
// to go, first.
void CclGroup::give_up() noexcept {
  say_failed();
  if (!communicator || !communicator->give_up()) return;
  const auto abort = [broken = communicator,
                      recorded = std::shared_ptr<CclReplays>(std::move(replays)),
                      runtime = &mailboxes().runtime(), device = mailboxes().device()]() mutable {
    (void)runtime->run_on(device, [&] {
      recorded.reset();
      broken->abort();
      return Status();
    });
  };
  try {
    std::thread(abort).detach();
  } catch (const std::system_error& error) {
    log::warn("{}: not ended: {}", library.name(), error.what());
  }
}

}  // namespace accord::coll
