// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives in which only the two ranks of a pair know what they exchange (alltoallv, alltoallw,
// gatherv, scatterv, and those of neighbours): no size is common to all ranks. Each way of them is
// a file of this folder.
// - pairwise_exchange.h: within a node, between the users' buffers or through regions.
// - inbox_pairs.h: within a node, short pairs by inboxes and the others by a PairwiseExchange.
// - two_level_pairs.h: on several nodes, a PairwiseExchange within the node and far_pairs.h for the
//   rest, which puts the shortest together (bundles.h).
// - library/pairs.h, beside what it goes by: by a collective library.
// Here is what they share: how a pair is described, and what becomes of a mistake of the program,
// which ends one pair but not the call. Their state machines differ: within a node a receiver reads
// its peer's record and fetches; between nodes all is messages, and a rank goes on for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/call_end.h"

namespace accord::coll {

// What this rank sends one peer, or receives from it. Algorithms add how far it has come.
struct Pair {
  int peer = 0;
  core::Segment block{};  // at the user's address of its end
  std::size_t size_bytes = 0;
  // Neighbours may have several blocks for each other, which go as one: those behind the first, and
  // a hash of the sizes of all. 0: there are none.
  std::vector<core::Segment> further{};
  std::uint32_t sizes_hash = 0;

  bool is_one_block() const noexcept { return further.empty(); }
  void add(const core::Segment& part);
};

// Of an end whose blocks are those of the ranks, in order, unless it names their peers. No blocks:
// nothing for anybody.
Pair pair_of(const core::CallEnd& end, int peer);
std::size_t pair_bytes(const core::CallEnd& end, int peer) noexcept;
// An end of equal blocks, one for each rank, as one whose blocks are those of the ranks.
core::CallEnd in_blocks(const core::CallEnd& end, int ranks);
// What all blocks of an end have in common.
core::CallEnd without_blocks(const core::CallEnd& end);
// Where a block begins that has no gaps.
inline std::byte* address_of(const core::CallEnd& end, const core::Segment& block) noexcept {
  return core::at(end.user, block.offset_bytes + block.type->low_bytes());
}
// Adds what moves bytes [first, first + length) of a pair to `packed` or from there.
void add_copies(const core::CallEnd& end, const Pair& pair, core::CallEnd::Direction direction,
                std::size_t first_bytes, std::size_t length_bytes, void* packed,
                core::CopyBatch& batch);

// Adds what brings all bytes of a pair from where its sender has them: its runs in steps from that
// address on, or one behind the other where these have no bytes.
void add_copies_from(std::byte* lent, const device::Steps& runs, const core::CallEnd& end,
                     const Pair& pair, core::CopyBatch& batch);

// The peer sends something else than this rank expects; it has its own error, not_received().
Status sends_other(int peer, std::size_t sent_bytes, std::size_t expected_bytes);
// As much in all, but in other blocks.
Status sends_other_blocks(int peer);
Status not_received(int peer, std::size_t sent_bytes);

// Goes on with a part of a call unless it is `done`. What a part ends with is a mistake of the
// program, kept for the end of the call; before its end it is an error.
template <class Part>
Status advance_part(Part& part, bool& done, Status& mistake) {
  if (done) return {};
  Status status = part.advance(done);
  if (!done) return status;
  keep_first(mistake, std::move(status));
  return {};
}

}  // namespace accord::coll
