// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a receiver copies what it fetches: by a kernel that is there already, or by what the runtime
// begins for it.
#include "base/config.h"
#include "node/group.h"
#include "node/outbox.h"

namespace accord::node {

Status Outbox::copy(std::span<const device::Copy> copies, Fetch how) {
  bool done = copies.empty();
  if (!done) ACCORD_TRY(copy_quickly(copies, 1, how, done));
  return done ? Status() : runtime().copy(device(), copies);
}

Status Outbox::begin_copies(const device::CopyBatch& batch, std::size_t messages, Fetch how,
                            device::CopyTicket& ticket) {
  if (!batch.laid_out.empty()) return runtime().batch_begin(device(), batch, ticket);
  const std::span<const device::Copy> copies(batch.plain.copies());
  bool done = copies.empty();
  if (!done) ACCORD_TRY(copy_quickly(copies, messages, how, done));
  if (done) return Status();
  return is_window() ? runtime().copy_begin_patiently(device(), copies, ticket)
                     : runtime().copy_begin(device(), copies, ticket);
}

// Whether so many receives are posted that a turn on the device costs each of their messages less
// than a copy of its own (H100, windows of 64 messages of 4 KiB: 545 MB/s instead of 419).
bool Outbox::is_window() const noexcept {
  constexpr std::uint32_t kMessages = 8;
  return takes_turns_.load(std::memory_order_relaxed) &&
         group_->outbox(group_->rank()).posted.load(std::memory_order_relaxed) >= kMessages;
}

// One that has left the device comes back later than an engine begins, unless it is for what a
// single block copies, which is a kernel of its own: behind a gap 29 to 33 us instead of 20, from
// 16 to 256 KiB (2 x H200).
bool Outbox::kernel_is_worth_it(std::size_t size_bytes) noexcept {
  constexpr std::size_t kBlockBytes = std::size_t{8} << 10;
  if (size_bytes <= kBlockBytes) return true;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::duration since(now - last_wish_.exchange(now, std::memory_order_relaxed));
  return since < std::chrono::microseconds(config().linger_us);
}

// Where ranks share a device through a server, one launch copies all that is fetched at once sooner
// than a kernel that waits for its turn among those of others (windows of 64 KiB, H100 under MPS:
// 24 GB/s instead of 16).
bool Outbox::is_better_together(std::size_t size_bytes) const noexcept {
  constexpr std::size_t kShortBytes = std::size_t{4} << 10;
  const OutboxBoard& board = group_->outbox(group_->rank());
  return size_bytes > kShortBytes && board.posted.load(std::memory_order_relaxed) > 1 &&
         board.kernel_server.load(std::memory_order_relaxed) != 0;
}

// What comes together in a window is copied by one launch, or by engines, while the next look is
// taken: for more than some messages that is better than to wait for them here (2 x H200, 16 of 256
// KiB both ways: 6.4 us each instead of 7.1, but two of 64 KiB 8.6 instead of 12.5).
Status Outbox::copy_quickly(std::span<const device::Copy> copies, std::size_t messages, Fetch how,
                            bool& done) {
  constexpr std::size_t kTogetherBytes = std::size_t{1} << 20;
  std::size_t size_bytes = 0;
  for (const device::Copy& copy : copies) size_bytes += copy.rows * copy.row_bytes;
  if (how == Fetch::by_engine || takes_turns_.load(std::memory_order_relaxed) ||
      (messages > 1 ? size_bytes > kTogetherBytes : is_better_together(size_bytes)) ||
      !kernel_is_worth_it(size_bytes))
    return {};
  ACCORD_TRY(worker_->copy(copies, done));
  if (done) quick_.fetch_add(messages, std::memory_order_relaxed);
  return {};
}

}  // namespace accord::node
