// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/spread_plan.h"

#include <algorithm>

#include "base/rounding.h"

namespace accord::node {
namespace {

// Shares of this size repay a second piece, which costs 3 us a copy: it is fetched while the kernel
// reduces the first one (2 x H200, allreduce of 64 MiB: 264 GB/s in one piece, 309 in two).
constexpr std::size_t kShareInTwoBytes = std::size_t{24} << 20;

// Where nothing is stored by engines, nothing hides the reduction of the last piece.
constexpr std::size_t kLonePieceBytes = std::size_t{32} << 20;

}  // namespace

SpreadPlan::SpreadPlan(const DirectPlan& plan, int rank, std::size_t region_bytes)
    : size_(plan.size()), share_(plan.share(rank)) {
  std::size_t longest_bytes = 0;
  for (int of = 0; of < size_; ++of)
    longest_bytes = std::max(longest_bytes, plan.share(of).length_bytes);
  const std::size_t granule_bytes = plan.granule_bytes();
  if (!fetches()) {
    pieces_ = 1;
    step_bytes_ = longest_bytes;
    return;
  }
  // A line is left for buffers that do not begin with one.
  const std::size_t room_bytes =
      (region_bytes - granule_bytes) / kPiecesInRegion / granule_bytes * granule_bytes;
  const std::size_t pieces_min = longest_bytes < kShareInTwoBytes ? 1 : kPiecesInRegion;
  const std::size_t most_bytes =
      plan.shares_result() ? room_bytes : std::min(room_bytes, kLonePieceBytes);
  pieces_ = std::max(pieces_min, divide_up(longest_bytes, most_bytes));
  step_bytes_ = round_up(divide_up(longest_bytes, pieces_), granule_bytes);
}

Share SpreadPlan::part(std::size_t piece) const {
  const Range part = part_of(share_.length_bytes, piece, step_bytes_);
  return {share_.source_bytes + part.first_bytes, share_.result_bytes + part.first_bytes,
          part.length_bytes};
}

std::size_t SpreadPlan::slot_bytes(std::size_t piece) const {
  return piece % kPiecesInRegion * step_bytes_;
}

}  // namespace accord::node
