// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One collective straight between the users' buffers of a node, without chunks; a state machine
// like NodeExchange. Each rank first says whether its buffers may be reached: plain memory
// of the device, opened by the peers that need it (node/offers.h), and such that what this rank
// writes never overtakes what its peers read. One no and all ranks decline together. Then each does
// its part, one kernel or one batch of copies, or both at once (spread_reduction.h).
// Peers reach into the buffers of a rank, and store there, so its call ends only when they are done
// too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/stages.h"
#include "coll/coll_args.h"
#include "coll/intra/spread_reduction.h"
#include "node/direct_plan.h"
#include "node/group.h"

namespace accord::coll {

class DirectExchange {
 public:
  enum class Outcome { pending, done, declined };

  // The ends outlive the exchange. To be made in the order of the communicator's calls.
  DirectExchange(std::shared_ptr<node::Group> group, const CollArgs& args);

  Status advance(Outcome& outcome);
  // After an error: `done` once no copy of this rank works on anybody's buffers any more.
  void stop(bool& done);
  // What it is at, for people.
  stages::Stage stage() const noexcept;

  // Of this process: calls that went this way, those of them spread by engines, and those that
  // would have gone this way but for some buffer.
  struct Counters {
    std::uint64_t direct = 0;
    std::uint64_t spread = 0;
    std::uint64_t declined = 0;
  };
  static Counters counters() noexcept;
  // Says them, and what was opened, to those who listen at level info.
  static void report();

 private:
  enum class State { arriving, gathering, working, parting, done, declined };

  Status step();
  bool record_is_free() const;
  void arrive();
  bool lend(const core::CallEnd& end, int users, node::Range range, node::Place& place);
  bool reads_survive() const;
  // Whether the records that decide are there; `direct`: and all say yes. One no is enough.
  bool gathered(bool& direct) const;
  Status begin();
  Status begin_kernel();
  Status begin_copies();
  bool peers_are_done() const;
  void begin_spread();
  Status poll(bool& done);
  void settle(State next);

  node::Board& board(int rank) const { return group_->offers().board(rank); }
  node::Board& own_board() const { return board(group_->rank()); }
  node::Arrival& record(int rank) const {
    return board(rank).arrivals[call_ % node::Board::kArrivals];
  }
  std::byte* contribution(int rank) const;
  std::byte* result(int rank) const;

  std::shared_ptr<node::Group> group_;
  const CollArgs& args_;
  node::DirectPlan plan_;
  std::uint64_t call_;
  State state_ = State::arriving;
  std::array<device::CopyTicket, 2> tickets_;
  std::optional<SpreadReduction> spread_;
};

}  // namespace accord::coll
