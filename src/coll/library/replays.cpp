// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/replays.h"

#include <algorithm>
#include <bit>

namespace accord::coll {
namespace {

bool same(const ccl::Work& one, const ccl::Work& other) {
  return one.send == other.send && one.recv == other.recv && one.count == other.count &&
         one.call == other.call && one.type == other.type && one.op == other.op &&
         one.peer == other.peer;
}

std::uint64_t mark_of(std::span<const ccl::Work> works, std::uint64_t memory) {
  std::uint64_t mark = memory + works.size();
  const auto add = [&](std::uint64_t word) { mark = (mark ^ word) * 0x9e3779b97f4a7c15; };
  for (const ccl::Work& work : works) {
    add(reinterpret_cast<std::uintptr_t>(work.send));
    add(reinterpret_cast<std::uintptr_t>(work.recv));
    add(work.count);
    add(static_cast<std::uint64_t>(work.call) << 24 | static_cast<std::uint64_t>(work.type) << 16 |
        static_cast<std::uint64_t>(work.op) << 8);
    add(static_cast<std::uint64_t>(work.peer));
  }
  return mark;
}

}  // namespace

std::uint64_t CclReplays::offer(std::span<const ccl::Work> works, std::uint64_t memory) {
  if (has_failed_) return 0;
  if (works.empty()) return ~std::uint64_t{0};  // whatever the others do
  std::uint64_t offered = kAble;
  for (unsigned i = 0; i < kSlots; ++i) {
    const Slot& slot = slots_[i];
    if (slot.recording && slot.memory == memory && std::ranges::equal(slot.works, works, same))
      offered |= std::uint64_t{1} << i;
  }
  if (offered != kAble || has_come_often(works, memory)) offered |= kAnother;
  return offered;
}

bool CclReplays::has_come_often(std::span<const ccl::Work> works, std::uint64_t memory) noexcept {
  const std::uint64_t mark = mark_of(works, memory);
  Seen& seen = seen_[mark >> 56];
  static_assert(kSeen == std::size_t{1} << (64 - 56));
  if (seen.mark != mark) seen = {.mark = mark, .calls = 0};
  return ++seen.calls > kCallsBefore;
}

CclReplays::Decision CclReplays::decide(std::uint64_t offered_by_all) noexcept {
  if ((offered_by_all & kAble) == 0) {
    give_up();
    return {};
  }
  const std::uint64_t known = offered_by_all & ~(kAnother | kAble);
  if (known != 0) {
    ++replayed_;
    return {Way::replay, static_cast<unsigned>(std::countr_zero(known))};
  }
  const bool pays = recorded_ < kSlots || replayed_ >= recorded_ * kReplaysEach;
  if ((offered_by_all & kAnother) == 0 || !pays) return {};
  const auto slot = static_cast<unsigned>(recorded_++ % kSlots);
  slots_[slot] = {};
  return {Way::record, slot};
}

void CclReplays::give_up() noexcept {
  has_failed_ = true;
  slots_ = {};
}

void CclReplays::keep(unsigned slot, std::span<const ccl::Work> works, std::uint64_t memory,
                      std::unique_ptr<device::Recording> recording) {
  slots_[slot] = {std::move(recording), {works.begin(), works.end()}, memory};
}

}  // namespace accord::coll
