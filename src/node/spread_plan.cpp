// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/spread_plan.h"

#include <algorithm>

namespace accord::node {
namespace {

// An engine loses 3 us a copy (4 x H200), a fifteenth of the time of so many bytes.
constexpr std::size_t kCopyBytesMin = std::size_t{16} << 20;

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// A kernel that stores its results in all ranks' buffers needs the same links as the engines: more
// pieces than must be only cost. Else all but the last kernel's time is hidden.
std::size_t pieces_wanted(const DirectPlan& plan, std::size_t longest_bytes) {
  if (plan.shares_result()) return 1;
  return std::max<std::size_t>(1, longest_bytes / kCopyBytesMin);
}

}  // namespace

// One piece alone may have the whole region.
SpreadPlan::SpreadPlan(const DirectPlan& plan, int rank, std::size_t region_bytes)
    : rank_(rank), size_(plan.size()), share_(plan.share(rank)) {
  if (share_.length_bytes == 0) return;
  const std::size_t granule_bytes = plan.granule_bytes();
  const auto senders = static_cast<std::size_t>(size_ - 1);
  half_bytes_ = region_bytes / kHalves / granule_bytes * granule_bytes;
  const auto room_bytes = [&](std::size_t bytes) {
    return bytes / senders / granule_bytes * granule_bytes;
  };
  pieces_ = pieces_wanted(plan, share_.length_bytes);
  if (pieces_ > 1 || share_.length_bytes > room_bytes(region_bytes))
    pieces_ = std::max(pieces_, divide_up(share_.length_bytes, room_bytes(half_bytes_)));
  step_bytes_ = divide_up(divide_up(share_.length_bytes, pieces_), granule_bytes) * granule_bytes;
  pieces_ = divide_up(share_.length_bytes, step_bytes_);
}

DirectShare SpreadPlan::part(std::size_t piece) const {
  const std::size_t low = std::min(share_.length_bytes, piece * step_bytes_);
  const std::size_t high = std::min(share_.length_bytes, low + step_bytes_);
  return {share_.source_bytes + low, share_.result_bytes + low, high - low};
}

std::size_t SpreadPlan::slot_bytes(int sender, std::size_t piece) const {
  const auto place = static_cast<std::size_t>((sender - rank_ - 1 + size_) % size_);
  return piece % kHalves * half_bytes_ + place * step_bytes_;
}

}  // namespace accord::node
