// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls of a collective library that come again with the same buffers: one is recorded once, and
// what was recorded is launched instead of later calls like it, which costs the host far less. A
// recording may refer to the peers' buffers (NCCL's does), so all ranks record in one call, and
// replay only where each has the buffers that it had then. What a rank has is its own affair; it
// tells the others in a word (turn.h), and what all do follows from what all have told.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ccl/library.h"
#include "device/device_runtime.h"

namespace accord::coll {

// Of one group; all of it is equal on all ranks but whose buffers are where.
class CclReplays {
 public:
  static constexpr unsigned kSlots = 16;
  // A call is worth a recording once it has come so often on every rank; and another recording,
  // where all slots are taken, once those before were replayed so often each.
  static constexpr unsigned kCallsBefore = 2;
  static constexpr std::uint64_t kReplaysEach = 64;

  // What this rank could do with these works, in memory that `memory` tells from any other that had
  // the same addresses: a bit for each recording of just this call, and one for making another.
  std::uint64_t offer(std::span<const ccl::Work> works, std::uint64_t memory);
  // The same of a call that cannot be recorded.
  std::uint64_t offer_nothing() const noexcept { return has_failed_ ? 0 : kAble; }

  enum class Way { plain, record, replay };
  struct Decision {
    Way way = Way::plain;
    unsigned slot = 0;
  };
  // What all ranks do in the call, from the bits that all have offered. Once for each call.
  Decision decide(std::uint64_t offered_by_all) noexcept;

  // Of a decision to record, on a rank where that has succeeded; `works` and `memory` as offered.
  void keep(unsigned slot, std::span<const ccl::Work> works, std::uint64_t memory,
            std::unique_ptr<device::Recording> recording);
  // On a rank where it has not: it keeps and offers no more. The others give up, too, once they
  // hear that in a later call, since their recordings are of no use any more and keep memory.
  void give_up() noexcept;
  device::Recording& recording(unsigned slot) noexcept { return *slots_[slot].recording; }

 private:
  struct Slot {
    std::unique_ptr<device::Recording> recording;
    std::vector<ccl::Work> works;
    std::uint64_t memory = 0;
  };
  struct Seen {
    std::uint64_t mark = 0;
    unsigned calls = 0;
  };
  static constexpr std::uint64_t kAnother = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kAble = std::uint64_t{1} << 62;  // has not given up
  static constexpr std::size_t kSeen = 256;

  bool has_come_often(std::span<const ccl::Work> works, std::uint64_t memory) noexcept;

  std::array<Slot, kSlots> slots_;
  std::array<Seen, kSeen> seen_{};
  std::uint64_t recorded_ = 0;
  std::uint64_t replayed_ = 0;
  bool has_failed_ = false;
};

}  // namespace accord::coll
