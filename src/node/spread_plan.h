// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a long reduction goes where copy engines carry to each rank what the others have for its
// share, into a slot a sender of its exchange region, and its kernel then works on its own memory:
// piece by piece, so that the engines bring the next piece while the kernel works on this one.
// Pure arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "node/direct_plan.h"

namespace accord::node {

class SpreadPlan {
 public:
  // Pieces that have slots of their own at the same time.
  static constexpr std::size_t kHalves = 2;

  // `plan` has the form of shares that are spread.
  SpreadPlan(const DirectPlan& plan, std::size_t region_bytes);

  std::size_t pieces() const noexcept { return pieces_; }

  // Of the share of `rank`; of shorter shares the last pieces are empty.
  DirectShare part(int rank, std::size_t piece) const;
  // Where in the region of `receiver` lies what `sender` has for a piece of its share.
  std::size_t slot_bytes(int sender, int receiver, std::size_t piece) const;
  // To whom `rank` sends a piece, in this order.
  std::vector<int> receivers(int rank, std::size_t piece) const;

 private:
  std::vector<DirectShare> shares_;  // by rank
  std::size_t half_bytes_ = 0;       // of a region
  std::size_t step_bytes_ = 0;       // of each share, in all pieces but its last
  std::size_t pieces_ = 0;
};

}  // namespace accord::node
