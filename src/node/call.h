// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What each collective moves: which ranks put something in and which get something out (Pattern),
// which block of it is for whom, and where that lies in the packed forms of both ends (Geometry).
// Every algorithm takes this from here. Their plans add the steps, which have little in common:
// chunks through slots of a region (plan.h), one batch or kernel between the users' buffers
// (direct_plan.h, in pieces spread_plan.h), two levels of nodes (coll/inter/plan.h), functions of a
// library (coll/library/plan.h). Pure arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/reduction.h"

namespace accord::node {

// As numbers they are part of a call's key (core/agreement.h): never reorder.
enum class Kind : std::uint32_t {
  bcast = 1,
  reduce,
  allreduce,
  allgather,
  alltoall,
  gather,
  scatter,
  reduce_scatter_block,
  scan,
  exscan,
  reduce_scatter,
  allgatherv,
  gatherv,
  scatterv,
  alltoallv,
  alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
};

// No size of such a call is common to all ranks: it goes pair by pair (pairs.h), and has no
// pattern.
constexpr bool goes_by_pairs(Kind kind) noexcept { return kind >= Kind::gatherv; }
// Between neighbours of a topology; any two ranks may be so several times.
constexpr bool is_among_neighbours(Kind kind) noexcept { return kind >= Kind::neighbor_allgather; }

struct Pattern {
  bool from_root = false;   // only the root puts something in
  bool to_root = false;     // only the root gets something out
  bool blocks_in = false;   // what a rank puts in is a block for each rank; else one for all
  bool blocks_out = false;  // what a rank gets out is a block of each rank; else one
  bool reduces = false;     // what comes from several ranks is made one
  bool is_prefix = false;   // of those before this rank alone

  // One message, the same for all.
  constexpr bool is_whole() const noexcept { return !blocks_in && !blocks_out && !is_prefix; }
  constexpr bool gathers_to_all() const noexcept { return blocks_out && !blocks_in && !to_root; }
  constexpr bool scatters_result() const noexcept { return reduces && blocks_in; }
};

constexpr Pattern pattern_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::bcast:
      return {.from_root = true};
    case Kind::reduce:
      return {.to_root = true, .reduces = true};
    case Kind::gather:
      return {.to_root = true, .blocks_out = true};
    case Kind::scatter:
      return {.from_root = true, .blocks_in = true};
    case Kind::allgather:
    case Kind::allgatherv:
      return {.blocks_out = true};
    case Kind::alltoall:
      return {.blocks_in = true, .blocks_out = true};
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
      return {.blocks_in = true, .reduces = true};
    case Kind::scan:
    case Kind::exscan:
      return {.reduces = true, .is_prefix = true};
    case Kind::allreduce:
      return {.reduces = true};
    default:
      return {};
  }
}

struct Call {
  Kind kind = Kind::bcast;
  int size = 1;
  int root = 0;
  // Of one block: the whole message of bcast, reduce, allreduce and scans; else what one rank sends
  // another.
  std::size_t block_bytes = 0;
  // By rank, where blocks differ (reduce_scatter, allgatherv); block_bytes then is the longest.
  std::vector<std::size_t> blocks_bytes = {};
  bool fits_regions = true;  // long enough to be worth a way through exchange regions
  device::ReduceOp op = device::ReduceOp::none;  // reductions only
  device::Element element = device::Element::none;
  // Allreduce and reduce up to here in one shot: who needs the result reduces all of it.
  std::size_t one_shot_bytes = 0;
  // Blocks from here on are moved by copy engines where kernels would do it too.
  std::size_t engine_bytes = 0;
  // Reductions of at least so many bytes a rank are spread by copy engines (spread_plan.h).
  std::size_t spread_bytes = SIZE_MAX;
};

struct Range {
  std::size_t first_bytes = 0;
  std::size_t length_bytes = 0;
};

// In place: of gathers to all, a rank's contribution lies at its block of what it gets out; of
// gather and scatter, the root's own block stays where it is.
class Geometry {
 public:
  explicit Geometry(const Call& call);

  const Pattern& pattern() const noexcept { return pattern_; }

  // The block of a rank in the packed form of all blocks; where the next rank's would begin, if
  // there is no such rank.
  std::size_t first(int rank) const noexcept {
    const auto at = static_cast<std::size_t>(rank);
    return firsts_.empty() ? at * block_bytes_ : firsts_[at];
  }
  std::size_t length(int rank) const noexcept {
    return firsts_.empty() ? block_bytes_ : first(rank + 1) - first(rank);
  }
  Range block(int rank) const noexcept { return {first(rank), length(rank)}; }
  std::size_t all_bytes() const noexcept { return first(size_); }

  bool puts_in(int rank) const noexcept { return !pattern_.from_root || rank == root_; }
  bool gets_out(int rank) const noexcept;
  bool keeps_own_block(int rank, bool in_place) const noexcept {
    return in_place && (pattern_.gathers_to_all() ||
                        (rank == root_ && (kind_ == Kind::gather || kind_ == Kind::scatter)));
  }
  // Of the packed form of its ends; nothing where it has none, or none that moves.
  Range contribution(int rank, bool in_place) const noexcept;
  Range result(int rank, bool in_place) const noexcept;

  // What `from` has for `to`: how long that is, where it begins in the contribution of `from`, and,
  // unless it is reduced, in what `to` gets out.
  bool moves(int from, int to) const noexcept { return puts_in(from) && gets_out(to); }
  std::size_t length(int from, int to) const noexcept {
    return length(pattern_.blocks_in ? to : from);
  }
  std::size_t place_in(int to) const noexcept { return pattern_.blocks_in ? first(to) : 0; }
  std::size_t place_out(int from) const noexcept { return pattern_.blocks_out ? first(from) : 0; }

 private:
  Kind kind_;
  Pattern pattern_;
  int size_;
  int root_;
  std::size_t block_bytes_;
  std::vector<std::size_t> firsts_;  // where blocks begin, and where all end, if they differ
};

// Where parts of a packed form begin: kernels move 16 bytes at once, copy engines like whole lines.
constexpr std::size_t kLineBytes = 256;
// Whole lines of whole elements: some have 6 or 12 bytes.
std::size_t granule_bytes(const Call& call) noexcept;
// Whatever the element.
constexpr std::size_t kGranuleBytesMax = 3 * kLineBytes;

// Of `bytes` that `count` of them share: the share of number `number`, in whole granules. The last
// ones may get less, or nothing.
Range even_share(std::size_t bytes, int number, int count, std::size_t granule_bytes) noexcept;
// Part `number` of those of `part_bytes` each.
Range part_of(std::size_t bytes, std::size_t number, std::size_t part_bytes) noexcept;

// Bytes at `theirs` of what `peer` shows, against `own` of the packed form of this rank's end.
struct Move {
  int peer = 0;
  std::size_t theirs_bytes = 0;
  std::size_t own_bytes = 0;
  std::size_t length_bytes = 0;
};

// The part of a result that one rank makes: at `source` of what each source shows, to `result`.
struct Share {
  std::size_t source_bytes = 0;
  std::size_t result_bytes = 0;
  std::size_t length_bytes = 0;
};

}  // namespace accord::node
