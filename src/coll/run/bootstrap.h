// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the ranks of a communicator come to what its calls go by. After a vote next() names, one
// after the other, the Meetings that all ranks hold for this call: a collective library's
// communicator, inboxes, regions, a group on each node, a wire between nodes. Then situation() says
// what they share, for select(). All of it follows from what is equal on all ranks: the call, the
// vote, the number of the call, and what earlier meetings came to. Not thread-safe: one
// operation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "coll/coll_args.h"
#include "coll/library/group.h"
#include "core/agreement.h"
#include "core/meeting.h"
#include "core/team.h"

namespace accord::coll {

class Bootstrap {
 public:
  // Whose request it is for: a persistent one has said what it needs.
  enum class Owner { call, request };

  // They outlive it.
  Bootstrap(core::Team& team, const CollArgs& args, Owner owner)
      : team_(team), args_(args), owner_(owner) {}

  // What is to be joined next, by a call of its key that has this number; null: nothing any more.
  std::unique_ptr<core::Meeting> next(const core::Vote& vote, std::uint64_t number);
  // After a meeting that did not settle anything, since a rank uses no device yet: this call joins
  // nothing more.
  void stop_joining() noexcept { joins_ = false; }

  Situation situation(const core::Vote& vote) const;
  // Why the call goes by `algorithm` and by no better one, for people; "": it is the best.
  std::string why(const Algorithm& algorithm, const core::Vote& vote) const;
  // The same where no rank has a buffer on a device.
  const char* why_no_device() const noexcept;

  bool wants_library() const noexcept;
  bool by_pairs() const noexcept;
  // Of a call pair by pair: whether no rank has a pair that is worth more than inboxes and bundles.
  bool are_short(const core::Vote& vote);

 private:
  CclGroup& library() const;
  CclGroup* library_to_join(const core::Vote& vote) const;
  bool has_library() const;
  void learn_placement();
  std::unique_ptr<core::Meeting> next_across_nodes(const core::Vote& vote, std::uint64_t number);
  core::NodeGroup* group_to_join(const core::Vote& vote, std::uint64_t number) const;
  core::NodeGroup* group_of_pairs_to_join(const core::Vote& vote, bool is_often) const;
  bool is_to_join(const core::NodeGroup& group, std::size_t wanted_bytes) const;
  bool is_across_nodes() const noexcept { return team_.regions.placement.nodes() > 1; }
  bool wants_two_levels(const core::Vote& vote) const;
  bool has_two_levels(const core::Vote& vote) const;
  bool has_inboxes() const;
  bool waits_for_turns() const;
  bool may_need_host_regions() const;
  bool has_host_regions() const;
  bool has_regions() const;
  std::size_t wanted_region_bytes() const;
  std::size_t wanted_lane_bytes() const;

  core::Team& team_;
  const CollArgs& args_;
  Owner owner_;
  bool joins_ = true;
};

}  // namespace accord::coll
