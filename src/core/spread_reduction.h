// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank does in a reduction that is spread over copy engines and kernels
// (node/spread_plan.h), once all ranks are there and their buffers can be reached: engines fetch
// what the others have for a piece of its share into its exchange region, its kernel reduces that
// in local memory, in the order of the ranks, and stores the result where it belongs, while the
// engines are at the next piece. Nobody waits for anybody in between. A state machine like
// NodeExchange.
#pragma once

#include <cstddef>
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

  // To be made when all ranks have begun this call of the communicator and hence ended those
  // before, which may use the region. The group outlives it.
  SpreadReduction(node::Group& group, const node::Call& call, const node::DirectPlan& plan,
                  Ends ends);

  // `done` once this rank has done its part; the others may still read its buffers or store there.
  Status advance(bool& done);
  // After an error: `done` once no copy or kernel of this rank is under way any more.
  void stop(bool& done);
  stages::Stage stage() const noexcept;

 private:
  // Of pieces one after the other: at most one is under way.
  struct Work {
    bool begun = false;
    std::size_t ended = 0;  // pieces
    device::CopyTicket ticket;
  };

  Status fetch(bool& moved);
  Status reduce(bool& moved);
  Status begin_fetch(std::size_t piece);
  Status begin_reduce(std::size_t piece);
  Status end(Work& work, bool& ended);
  Status poll(device::CopyTicket& ticket, bool& done);
  std::byte* slot(int sender, std::size_t piece) const;

  node::Group& group_;
  const device::ReduceOp op_;
  const device::Element element_;
  const node::SpreadPlan plan_;
  const Ends ends_;
  Work fetching_;
  Work reducing_;
};

}  // namespace accord::core
