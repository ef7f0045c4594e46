// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What one rank does for each partition of a partitioned collective, step by step: from whom it
// takes something and what becomes of that, and what it gives to whom. The same for all partitions,
// which go through it independently. Pure: follows from the ranks and the counts alone, so that
// the schedules of all ranks fit together. Knows no MPI and no memory. Whose block goes to whom is
// that of other collectives (node/call.h). Their plans are apart: here a step begins as soon as its
// partition has come, and where something lies is known with the datatypes of both ends, so places
// are elements of blocks instead of packed bytes.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "node/call.h"

namespace accord::partitioned {

// Memory of a partition. `work` is the library's own, for reductions, of one block.
enum class Area { contribution, result, work };

// Elements of the partition's piece of a block.
struct Place {
  static constexpr std::size_t kRest = std::numeric_limits<std::size_t>::max();

  Area area = Area::contribution;
  int block = 0;
  std::size_t first = 0;
  std::size_t count = kRest;  // all from the first on

  // Such places of neighbouring partitions are neighbours, too.
  bool whole() const noexcept { return first == 0 && count == kRest; }
  bool operator==(const Place&) const = default;
};

// What becomes of what a step takes. Operations need not be commutative.
enum class Combine {
  store,
  before,  // it op what is there
  after,   // what is there op it
};

struct Outgoing {
  int peer;
  Place place;
};
struct Incoming {
  int peer;
  Place place;
};

// What goes out is what is there when the step begins, and a step is over before the next one
// begins. What a rank gives to another one arrives there in the order in which it is given.
struct Step {
  static constexpr int kNobody = -1;

  std::vector<Outgoing> outgoing;  // none of them to this rank itself
  int from = kNobody;              // may be this rank itself, which then takes `own`
  Place own = {};
  Combine combine = Combine::store;
  Place into = {};
  // Not before all partitions have come this far.
  bool together = false;
};

using Schedule = std::vector<Step>;

// All that is moved goes straight to where it belongs. What a rank has for itself goes in the order
// of both lists.
Schedule direct_schedule(int rank, const std::vector<Outgoing>& outgoing,
                         const std::vector<Incoming>& incoming);

// The blocks of a collective straight from rank to rank, as its pattern has it; but for what a rank
// has for itself, if that is in its place.
Schedule block_schedule(const node::Call& call, int rank, bool keeps_own);

// Down a binomial tree: the root's contribution to the others' results.
Schedule broadcast_schedule(int rank, int size, int root);

// A reduction of one block, as all ranks know it.
struct ReductionOutline {
  int rank;
  int size;
  std::size_t count;          // of elements of a partition
  std::size_t element_bytes;  // without gaps
  bool commutative;
  bool in_rank_order;  // ((0 op 1) op 2) ..., whatever is faster
};

// Long partitions of more than two ranks around a ring, each rank reducing its share of them, which
// then goes around once more; others by exchanges with ranks 1, 2, 4, ... away, whole. In rank
// order from rank to rank and down a tree.
Schedule allreduce_schedule(const ReductionOutline& outline);
Schedule reduce_schedule(const ReductionOutline& outline, int root);
// From rank to rank.
Schedule scan_schedule(const ReductionOutline& outline);
Schedule exscan_schedule(const ReductionOutline& outline);
// The contribution has a block for each rank, the result one. Each rank gets what is its own from
// all and reduces it in rank order. `in_place`: results overwrite contributions of any partition.
Schedule reduce_scatter_schedule(int rank, int size, bool in_place);

}  // namespace accord::partitioned
