// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/ccl/group.h"

#include <algorithm>
#include <bit>
#include <system_error>
#include <thread>

#include "base/config.h"
#include "base/log.h"

namespace accord::core {

CclGroup& ccl_group_of(CommQueue& queue, ccl::Library& library) {
  const auto known = std::ranges::find_if(
      queue.ccls, [&](const auto& group) { return &group->library == &library; });
  if (known != queue.ccls.end()) return **known;
  return *queue.ccls.emplace_back(std::make_shared<CclGroup>(library));
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
  if (lender_ == nullptr || lender_->joined()) return this;
  if (!lender_->declined) return lender_;
  declined = true;
  why_declined = lender_->why_declined;
  return nullptr;
}

void CclGroup::share() {
  communicator = lender_->communicator;
  stream = lender_->stream;
  number = lender_->number + 2 * ++lender_->borrowers_;
  allow_replays();
  lender_ = nullptr;
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
  mailboxes().own_mailbox().failed.store(1, std::memory_order_release);
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

}  // namespace accord::core
