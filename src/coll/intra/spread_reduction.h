// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank does in a reduction that is spread over copy engines and kernels
// (node/spread_plan.h), once all ranks are there and their buffers can be reached: engines fetch
// what the other one has for a piece of its share into its exchange region, its kernel reduces that
// in local memory, or reads it from all ranks where there are more, in the order of the ranks, and
// engines store the result with the others, where all want it (a kernel stores more slowly; 2 x
// H200, pieces of 32 MiB: 348 GB/s instead of 364; 4 x H200, 1 GiB: 320 instead of 356). The three
// overlap, each with its own piece, and no rank waits for another: what it fetches and where it
// stores is nobody else's business in this call. A state machine like NodeExchange.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/stages.h"
#include "node/group.h"
#include "node/spread_plan.h"

namespace accord::coll {

class SpreadReduction {
 public:
  struct Ends {
    std::vector<const std::byte*> contributions;  // byte 0 of each rank's
    std::vector<std::byte*> results;              // byte 0 of those that its share goes to
  };

  // To be made in the order of the communicator's calls, when all ranks have begun this one and
  // hence ended those before, which may use the region. The group outlives it.
  SpreadReduction(node::Group& group, const node::Call& call, const node::DirectPlan& plan,
                  Ends ends);

  // `done` once this rank has done its part; the others may still read its buffers or store there.
  Status advance(bool& done);
  // After an error: `done` once no copy or kernel of this rank is under way any more.
  void stop(bool& done);
  stages::Stage stage() const noexcept;

 private:
  // What is done with a piece, one after the other; each with one piece at a time.
  enum Step { kFetch, kReduce, kStore, kSteps };
  struct Progress {
    std::size_t ended = 0;  // pieces
    bool is_under_way = false;
    device::CopyTicket ticket;
  };

  bool may_begin(Step step) const;
  Status begin(Step step, std::size_t piece);
  Status begin_fetch(std::size_t piece);
  Status begin_reduce(std::size_t piece);
  Status begin_store(std::size_t piece);
  Status poll(Progress& progress);
  const std::byte* contribution(int rank, std::size_t piece) const;
  std::byte* slot(std::size_t piece) const;

  node::Group& group_;
  const device::ReduceOp op_;
  const device::Element element_;
  const node::SpreadPlan plan_;
  const Ends ends_;
  std::array<Progress, kSteps> steps_;
};

}  // namespace accord::coll
