// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a long reduction goes that is spread over kernels and copy engines. Of two ranks the engines
// fetch what the other one has for this rank's share into a slot of its exchange region, and its
// kernel then works on local memory: in as many pieces as it takes, with slots for two of them, so
// that one is fetched while the kernel has another. Of more ranks the kernel itself reads all of
// the share from all of them: engines fetch from one after the other, and ranks that come upon the
// same one get half of its speed each and are late for the next (4 x H200, allreduce of 1 GiB in
// pieces of 32 MiB: 259 GB/s, and less the more ranks are out of step; by kernels 356, in step or
// not). Pure arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>

#include "node/direct_plan.h"

namespace accord::node {

class SpreadPlan {
 public:
  // `plan` has the form of shares that are spread.
  SpreadPlan(const DirectPlan& plan, int rank, std::size_t region_bytes);

  // Pieces that have slots at the same time.
  static constexpr std::size_t kPiecesInRegion = 2;

  bool fetches() const noexcept { return size_ == 2; }
  std::size_t pieces() const noexcept { return pieces_; }
  // Of this rank's share; of shorter shares the last pieces are empty.
  Share part(std::size_t piece) const;
  // Where in the region lies what is fetched for it.
  std::size_t slot_bytes(std::size_t piece) const;

 private:
  int size_;
  Share share_;
  std::size_t step_bytes_ = 0;  // of the share, in all pieces but its last
  std::size_t pieces_ = 0;
};

}  // namespace accord::node
