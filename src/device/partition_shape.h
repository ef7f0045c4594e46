// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Who gives and who gets in a collective of partitions, from which follows what the kernel of each
// rank does (device/partition_reduction.h).
#pragma once

#include <cstddef>

#include "device/partition_reduction.h"

namespace accord::device {

// What one rank does with each partition, in terms of that rank: whose contributions it reads, and
// in whose results it stores what becomes of them.
struct PartitionShape {
  enum class Ranks {
    all,
    root,
    own,         // that rank alone
    up_to_own,   // and all before it
    before_own,  // these without it
  };
  Ranks givers = Ranks::all;
  Ranks getters = Ranks::all;
  bool in_pairs = false;  // a rank has a block of its own for each getter
  int root = 0;

  bool operator==(const PartitionShape&) const = default;

  // All that are read or written have the same, which the ranks can share out.
  constexpr bool shared() const noexcept {
    return (givers == Ranks::all || givers == Ranks::root) &&
           (getters == Ranks::all || getters == Ranks::root);
  }
  // Whether ranks read or write what is another one's.
  constexpr bool reads_others() const noexcept { return givers != Ranks::own; }
  constexpr bool writes_others() const noexcept { return getters != Ranks::own; }
};

// Those of `rank`.
PartitionReduction::Ranks givers_of(const PartitionShape& shape, int rank, int ranks);
PartitionReduction::Ranks getters_of(const PartitionShape& shape, int rank, int ranks);

// By rank: what of its contribution this rank reads, and where in its result this rank stores.
// Null: nothing. Of pairs the sources are this rank's own, by who gets them.
struct PartitionPlaces {
  const void* sources[kPartitionRanksMax] = {};
  void* targets[kPartitionRanksMax] = {};
  std::size_t counts[kPartitionRanksMax] = {};  // of pairs: elements of a partition
};

// Says in `reduction`, which has all that is the same for any collective, what this rank does.
void arrange(const PartitionShape& shape, const PartitionPlaces& places,
             PartitionReduction& reduction);

}  // namespace accord::device
