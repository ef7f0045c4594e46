// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank does in a reduction that is spread by copy engines (node/spread_plan.h), once all
// ranks are there and their results can be stored where they belong: it pushes what it has for each
// piece of the others' shares into their exchange regions, and once all have, its kernel reduces
// the piece of its own share in local memory, in the order of the ranks. A state machine like
// NodeExchange; a piece counts as one chunk of the mailboxes.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/stages.h"
#include "node/group.h"
#include "node/spread_plan.h"

namespace accord::core {

class SpreadReduction {
 public:
  // Where byte 0 of a rank's contribution lies, and of the results that its kernel makes.
  struct Ends {
    const std::byte* contribution = nullptr;
    std::vector<std::byte*> results;
  };

  // To be made in the order of the communicator's calls, when all ranks have begun this one and
  // hence ended those before: until then they may use their regions for these. The group outlives
  // it.
  SpreadReduction(node::Group& group, const node::Call& call, const node::DirectPlan& plan,
                  Ends ends);

  // `done` once this rank has done its part; the others may still be storing.
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

  Status push(bool& moved);
  Status reduce(bool& moved);
  Status begin_push(std::size_t piece);
  Status begin_reduce(std::size_t piece);
  Status end(Work& work, bool& ended);
  Status poll(device::CopyTicket& ticket, bool& done);
  bool slots_are_free(std::size_t piece) const;
  bool is_there(std::size_t piece) const;
  std::byte* slot(int sender, int receiver, std::size_t piece) const;

  node::Group& group_;
  const device::ReduceOp op_;
  const device::Element element_;
  const node::SpreadPlan plan_;
  const Ends ends_;
  const std::uint64_t base_;  // number of the first piece in the group's life
  Work pushing_;
  Work reducing_;
};

}  // namespace accord::core
