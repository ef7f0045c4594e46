// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a collective of a device::PartitionShape does, as blocks of contributions and results: what
// tests of reducers of partitions give to them and expect of them.
#pragma once

#include <cstddef>
#include <vector>

#include "device/partition_shape.h"

namespace accord::test {

// All collectives that there are shapes for, of ranks that begin with the root.
inline std::vector<device::PartitionShape> partition_shapes(int root) {
  using Ranks = device::PartitionShape::Ranks;
  return {{},                                                                   // allreduce
          {.givers = Ranks::root, .root = root},                                // bcast
          {.getters = Ranks::root, .root = root},                               // reduce
          {.getters = Ranks::own},                                              // reduce_scatter
          {.givers = Ranks::own},                                               // allgather
          {.givers = Ranks::own, .getters = Ranks::root, .root = root},         // gather
          {.givers = Ranks::root, .getters = Ranks::own, .root = root},         // scatter
          {.givers = Ranks::own, .in_pairs = true},                             // alltoall
          {.givers = Ranks::up_to_own, .getters = Ranks::own},                  // scan
          {.givers = Ranks::before_own, .getters = Ranks::own, .root = root}};  // exscan
}

struct PartitionBlocks {
  using Ranks = device::PartitionShape::Ranks;
  device::PartitionShape shape;
  int ranks = 1;
  std::size_t count = 1;  // elements of a partition of a block, at most

  bool gives(int rank) const { return shape.givers != Ranks::root || rank == shape.root; }
  // Of a contribution, and of a result: one for each rank, or one for all.
  int contributed() const {
    const bool scatters =
        shape.getters == Ranks::own && (shape.givers == Ranks::all || shape.givers == Ranks::root);
    return scatters || shape.in_pairs ? ranks : 1;
  }
  int received() const { return shape.givers == Ranks::own ? ranks : 1; }
  // From a rank to a rank: those of pairs differ.
  std::size_t count_of(int from, int to) const {
    const auto less = static_cast<std::size_t>((from + to) % 3);
    return shape.in_pairs && less < count ? count - less : count;
  }

  // The ranks whose contributions make this block of a rank's result, in order: none where it gets
  // nothing.
  std::vector<int> sources(int rank, int block) const {
    const int owner = shape.givers == Ranks::own ? block : rank;
    std::vector<int> from;
    if (!getters_of(shape, owner, ranks).has(rank)) return from;
    const device::PartitionReduction::Ranks givers = givers_of(shape, owner, ranks);
    for (int i = givers.first; i < givers.first + givers.count; ++i) from.push_back(i);
    return from;
  }
  // Which block of these contributions.
  int source_block(int rank) const { return contributed() == 1 ? 0 : rank; }

  // source(rank, block) and target(rank, block) say where they are.
  template <class Source, class Target>
  void arrange_for(int own, Source source, Target target,
                   device::PartitionReduction& reduction) const {
    device::PartitionPlaces places;
    for (int rank = 0; rank < ranks; ++rank) {
      places.sources[rank] = shape.in_pairs ? source(own, rank) : source(rank, source_block(own));
      places.targets[rank] = target(rank, received() == 1 ? 0 : own);
      places.counts[rank] = count_of(own, rank);
    }
    reduction.rank = own;
    reduction.ranks = ranks;
    reduction.count = count;
    arrange(shape, places, reduction);
  }
};

}  // namespace accord::test
