// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Tags of the messages of two-level collectives, and of those by which groups are joined. They go
// up to the highest that any MPI has.
#pragma once

#include <cstdint>

#include "core/engine.h"

namespace accord::coll {

// A tag tells the chunks of a communicator's calls apart: no more of these are ever under way
// between two ranks, or, where a rank runs ahead of another, they are matched in their order.
inline constexpr std::uint64_t kTagsOfCalls = 4096;
// A persistent request has one call under way.
inline constexpr std::uint64_t kTagsOfRequest = 16;
inline constexpr std::uint64_t kTags = 32768;
// Of what one rank may tell another at any time, so that it comes late: no call has it.
inline constexpr int kAlarmTag = kTags - 1;
// The ranks of a node tell each other by it what they have made as they join a group, for calls and
// requests alike: all of them join in one order.
inline constexpr int kJoinTag = kTags - 2;

// `lane`: of a persistent request, else 0. `chunk`: its number in the life of the lane.
constexpr int tag_of(unsigned lane, std::uint64_t chunk) noexcept {
  if (lane == 0) return static_cast<int>(chunk % kTagsOfCalls);
  return static_cast<int>(kTagsOfCalls + (lane - 1) * kTagsOfRequest + chunk % kTagsOfRequest);
}

// For a persistent request of the communicator; 0: no more are left. Equal on all ranks.
inline unsigned next_lane(core::Nodes& nodes) noexcept {
  constexpr auto kLanes = static_cast<unsigned>((kJoinTag - kTagsOfCalls) / kTagsOfRequest);
  return nodes.lanes_given == kLanes ? 0 : ++nodes.lanes_given;
}

}  // namespace accord::coll
