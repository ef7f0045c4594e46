// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank does in a reduction that is spread over copy engines and kernels
// (node/spread_plan.h), once all ranks are there and their buffers can be reached: engines fetch
// what the others have for a piece of its share into its exchange region, then its kernel reduces
// that in local memory, in the order of the ranks, and stores the result where it belongs. All
// ranks fetch, and all store, at the same time: engines that fetch while kernels store lose a tenth
// (4 x H200, 256 MiB: 302 GB/s instead of 332). A state machine like NodeExchange; a piece counts
// as one chunk of the mailboxes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/stages.h"
#include "node/group.h"
#include "node/spread_plan.h"

namespace accord::core {

class SpreadReduction {
 public:
  struct Ends {
    std::vector<const std::byte*> contributions;  // byte 0 of each rank's
    std::vector<std::byte*> results;              // byte 0 of those that its kernel makes
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
  enum class State { before, fetching, between, reducing };

  Status step();
  Status begin_fetch();
  Status begin_reduce();
  Status poll(bool& done);
  bool all_have(std::atomic<std::uint64_t> node::Mailbox::*counter, std::size_t pieces) const;
  std::byte* slot(int sender) const;

  node::Group& group_;
  const device::ReduceOp op_;
  const device::Element element_;
  const node::SpreadPlan plan_;
  const Ends ends_;
  const std::uint64_t base_;  // number of the first piece in the group's life
  State state_ = State::before;
  std::size_t piece_ = 0;
  device::CopyTicket ticket_;
};

}  // namespace accord::core
