// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a receiver copies what it fetches: by a kernel that is there already, or by what the runtime
// begins for it.
#include <algorithm>
#include <array>

#include "base/config.h"
#include "node/group.h"
#include "node/outbox.h"

namespace accord::node {
namespace {

// What a kernel that is there already copies one after the other: a launch takes longer than two
// short runs do (a window of two of 2 and 64 KiB both ways, H200 under MPS: 31 us instead of 34).
class QuickRuns {
 public:
  explicit QuickRuns(std::span<const device::Copy> copies) {
    for (const device::Copy& copy : copies) {
      if (copy.rows > runs_.size() - count_) return;
      for (std::size_t row = 0; row < copy.rows; ++row)
        runs_[count_++] = {
            .dst = static_cast<std::byte*>(copy.dst) + row * copy.dst_pitch_bytes,
            .src = static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes,
            .row_bytes = copy.row_bytes};
    }
    const auto is_short = [](const device::Copy& run) { return run.row_bytes <= kShortBytes; };
    are_all_ = count_ <= 1 || std::ranges::all_of(runs_, is_short);
  }
  // Whether these are all, and are worth it.
  bool are_all() const noexcept { return are_all_; }
  std::span<const device::Copy> get() const noexcept { return {runs_.data(), count_}; }

 private:
  static constexpr std::size_t kShortBytes = std::size_t{64} << 10;
  std::array<device::Copy, 2> runs_{};
  std::size_t count_ = 0;
  bool are_all_ = false;
};

}  // namespace

Status Outbox::copy(std::span<const device::Copy> copies, Fetch how) {
  bool done = copies.empty();
  if (copies.size() == 1) ACCORD_TRY(copy_quickly(copies[0], how, done));
  return done ? Status() : runtime().copy(device(), copies);
}

Status Outbox::begin_copies(const device::CopyBatch& batch, Fetch how, device::CopyTicket& ticket) {
  if (!batch.laid_out.empty()) return runtime().batch_begin(device(), batch, ticket);
  std::span<const device::Copy> copies(batch.plain.copies());
  const QuickRuns quick(copies);
  for (std::size_t i = 0; quick.are_all() && i < quick.get().size(); ++i) {
    bool done = false;
    ACCORD_TRY(copy_quickly(quick.get()[i], how, done));
    if (!done) break;
    copies = quick.get().subspan(i + 1);
  }
  if (copies.empty()) return Status();
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
// single block copies: behind a gap 29 to 33 us instead of 20, from 16 to 256 KiB (2 x H200).
bool Outbox::kernel_is_worth_it(std::size_t size_bytes) noexcept {
  constexpr std::size_t kBlockBytes = std::size_t{8} << 10;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::duration since(now - last_wish_.exchange(now, std::memory_order_relaxed));
  return size_bytes <= kBlockBytes || since < std::chrono::microseconds(config().linger_us);
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

Status Outbox::copy_quickly(const device::Copy& copy, Fetch how, bool& done) {
  if (how == Fetch::by_engine || takes_turns_.load(std::memory_order_relaxed) ||
      is_better_together(copy.row_bytes) || !kernel_is_worth_it(copy.row_bytes))
    return {};
  ACCORD_TRY(quick_copy_.run(runtime(), device(), copy, done));
  if (done) quick_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace accord::node
