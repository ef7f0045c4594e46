// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a long reduction goes where copy engines fetch what the other ranks have for this rank's
// share, into a slot a sender of its exchange region, and its kernel then works on local memory:
// piece by piece, so that the engines bring the next piece while the kernel is at this one. Pure
// arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>

#include "node/direct_plan.h"

namespace accord::node {

class SpreadPlan {
 public:
  // Pieces that have slots of their own at the same time.
  static constexpr std::size_t kHalves = 2;

  // `plan` has the form of shares that are spread; `region_bytes` are this rank's own.
  SpreadPlan(const DirectPlan& plan, int rank, std::size_t region_bytes);

  std::size_t pieces() const noexcept { return pieces_; }
  // Of this rank's share.
  DirectShare part(std::size_t piece) const;
  // Where in the region lies what `sender` has for a piece.
  std::size_t slot_bytes(int sender, std::size_t piece) const;

 private:
  int rank_;
  int size_;
  DirectShare share_;
  std::size_t half_bytes_ = 0;  // of the region
  std::size_t step_bytes_ = 0;  // of the share, in all pieces but the last
  std::size_t pieces_ = 0;
};

}  // namespace accord::node
