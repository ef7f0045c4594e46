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
SpreadPlan::SpreadPlan(const DirectPlan& plan, std::size_t region_bytes) {
  const std::size_t granule_bytes = plan.granule_bytes();
  std::size_t longest_bytes = 0;
  for (int rank = 0; rank < plan.size(); ++rank) {
    shares_.push_back(plan.share(rank));
    longest_bytes = std::max(longest_bytes, shares_.back().length_bytes);
  }
  const auto senders = static_cast<std::size_t>(plan.size() - 1);
  half_bytes_ = region_bytes / kHalves / granule_bytes * granule_bytes;
  const auto room_bytes = [&](std::size_t bytes) {
    return bytes / senders / granule_bytes * granule_bytes;
  };
  pieces_ = pieces_wanted(plan, longest_bytes);
  if (pieces_ > 1 || longest_bytes > room_bytes(region_bytes))
    pieces_ = std::max(pieces_, divide_up(longest_bytes, room_bytes(half_bytes_)));
  step_bytes_ = divide_up(divide_up(longest_bytes, pieces_), granule_bytes) * granule_bytes;
  pieces_ = divide_up(longest_bytes, step_bytes_);
}

DirectShare SpreadPlan::part(int rank, std::size_t piece) const {
  const DirectShare& share = shares_[static_cast<std::size_t>(rank)];
  const std::size_t low = std::min(share.length_bytes, piece * step_bytes_);
  const std::size_t high = std::min(share.length_bytes, low + step_bytes_);
  return {share.source_bytes + low, share.result_bytes + low, high - low};
}

std::size_t SpreadPlan::slot_bytes(int sender, int receiver, std::size_t piece) const {
  const int size = static_cast<int>(shares_.size());
  const auto place = static_cast<std::size_t>((sender - receiver - 1 + size) % size);
  return piece % kHalves * half_bytes_ + place * step_bytes_;
}

// Not all to the same rank at once.
std::vector<int> SpreadPlan::receivers(int rank, std::size_t piece) const {
  std::vector<int> ranks;
  const int size = static_cast<int>(shares_.size());
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    if (part(peer, piece).length_bytes > 0) ranks.push_back(peer);
  }
  return ranks;
}

}  // namespace accord::node
