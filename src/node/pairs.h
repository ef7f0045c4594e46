// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives in which no size is common to all ranks (coll/pairs/pair.h) go pair by pair: each
// sender tells each receiver where the bytes of that pair are, in a record of their own, and nobody
// else need know. They lie in the sender's own buffer, where that is lent (offers.h), or pass chunk
// by chunk through a lane of its exchange region. Shared memory and plain arithmetic.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/runs.h"
#include "node/offers.h"
#include "node/plan.h"

namespace accord::node {

// What one rank sends another in one call. Written by the sender once the receiver has settled all
// earlier calls (offers.h), but for `taken`; counts begin anew with each call. Zeros before the
// first.
struct alignas(128) Parcel {
  std::atomic<std::uint64_t> call{0};  // number of the call it is of, plus 1: the rest is there
  std::uint64_t size_bytes = 0;
  std::uint32_t sizes_hash = 0;  // of several blocks (coll/pairs/pair.h)
  std::uint32_t is_lent = 0;
  Place lent;                            // where it begins, and how its runs lie from there;
  device::Steps lent_runs;               // no bytes: it is one. Else:
  std::uint64_t lane_bytes = 0;          // from the start of the sender's region to the lane
  std::uint64_t chunk_bytes = 0;         // of all chunks but the last
  std::atomic<std::uint64_t> filled{0};  // chunks that lie in the lane, or have lain there
  alignas(64) std::atomic<std::uint64_t> taken{0};  // of them, by the receiver; what is lent is one
};

// How a rank divides its region among those that it sends through it.
class Lanes {
 public:
  static constexpr std::size_t kSlots = 4;  // chunks that lie in a lane at the same time

  // A region has room for so many lanes if it has for the slots of any plan (Plan::slot_bytes_min).
  Lanes(std::size_t region_bytes, std::size_t count)
      : slot_bytes_(region_bytes / std::max<std::size_t>(1, count) / kSlots / kAlignmentBytes *
                    kAlignmentBytes) {}

  std::size_t first_bytes(std::size_t lane) const noexcept { return lane * kSlots * slot_bytes_; }
  // Of a message of that size.
  std::size_t chunk_bytes(std::size_t size_bytes) const noexcept {
    const std::size_t whole =
        (chunk_bytes_wanted(size_bytes) + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
    return std::min(slot_bytes_, whole);
  }
  // Where a chunk lies in its lane.
  static std::size_t chunk_first_bytes(std::size_t chunk, std::size_t chunk_bytes) noexcept {
    return chunk % kSlots * chunk_bytes;
  }

 private:
  static constexpr std::size_t kAlignmentBytes = 256;
  std::size_t slot_bytes_;
};

}  // namespace accord::node
