// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/partition_shape.h"

#include <algorithm>

namespace accord::device {
namespace {

using Ranks = PartitionReduction::Ranks;

Ranks ranks_of(PartitionShape::Ranks which, int rank, int ranks, int root) {
  switch (which) {
    case PartitionShape::Ranks::all:
      return {0, ranks};
    case PartitionShape::Ranks::root:
      return {root, 1};
    case PartitionShape::Ranks::own:
      return {rank, 1};
    case PartitionShape::Ranks::up_to_own:
      return {0, rank + 1};
    case PartitionShape::Ranks::before_own:
      break;
  }
  return {0, rank};
}

// A getter that gives as well has started when it has marked, and a rank's own kernel runs only
// once it has.
Ranks starters_of(const PartitionShape& shape, int rank, int ranks) {
  const Ranks givers = givers_of(shape, rank, ranks);
  const Ranks getters = getters_of(shape, rank, ranks);
  for (int i = getters.first; i < getters.first + getters.count; ++i)
    if (i != rank && !givers.has(i)) return getters;
  return {};
}

// The ranks whose share this one gives to or gets from, and itself. They are neighbours in all
// shapes that there are.
Ranks awaited_by(const PartitionShape& shape, int rank, int ranks) {
  Ranks awaited;
  for (int of = 0; of < ranks; ++of) {
    if (of != rank && !givers_of(shape, of, ranks).has(rank) &&
        !getters_of(shape, of, ranks).has(rank))
      continue;
    if (awaited.count++ == 0) awaited.first = of;
  }
  return awaited;
}

// The first target is this rank's own, if it has one, or else one behind it, so that not all write
// to one at a time.
void list_pairs(const PartitionPlaces& places, PartitionReduction& reduction) {
  reduction.count = 0;
  for (int i = 0; i < reduction.ranks; ++i) {
    const int to = (reduction.rank + i) % reduction.ranks;
    if (places.sources[to] == nullptr || places.targets[to] == nullptr || places.counts[to] == 0)
      continue;
    reduction.sources[reduction.pairs] = places.sources[to];
    reduction.targets[reduction.pairs] = places.targets[to];
    reduction.counts[reduction.pairs] = places.counts[to];
    reduction.count = std::max(reduction.count, places.counts[to]);
    ++reduction.pairs;
  }
  reduction.source_count = reduction.target_count = reduction.pairs;
}

void list(const PartitionPlaces& places, const Ranks& givers, const Ranks& getters,
          PartitionReduction& reduction) {
  for (int from = givers.first; from < givers.first + givers.count; ++from)
    if (places.sources[from] != nullptr)
      reduction.sources[reduction.source_count++] = places.sources[from];
  for (int i = 0; i < reduction.ranks; ++i) {
    const int to = (reduction.rank + i) % reduction.ranks;
    if (!getters.has(to) || places.targets[to] == nullptr) continue;
    const bool is_there = reduction.source_count == 1 && reduction.sources[0] == places.targets[to];
    if (!is_there) reduction.targets[reduction.target_count++] = places.targets[to];
  }
}

}  // namespace

Ranks givers_of(const PartitionShape& shape, int rank, int ranks) {
  return ranks_of(shape.givers, rank, ranks, shape.root);
}
Ranks getters_of(const PartitionShape& shape, int rank, int ranks) {
  return ranks_of(shape.getters, rank, ranks, shape.root);
}

void arrange(const PartitionShape& shape, const PartitionPlaces& places,
             PartitionReduction& reduction) {
  const int rank = reduction.rank;
  const int ranks = reduction.ranks;
  reduction.shared = shape.shared();
  reduction.givers = givers_of(shape, rank, ranks);
  // None is through before it has marked its own.
  if (shape.givers == PartitionShape::Ranks::before_own) ++reduction.givers.count;
  reduction.starters = starters_of(shape, rank, ranks);
  reduction.tells_start = false;
  for (int of = 0; of < ranks; ++of)
    if (starters_of(shape, of, ranks).has(rank)) reduction.tells_start = true;
  reduction.awaited =
      reduction.shared ? Ranks{0, share_count(reduction)} : awaited_by(shape, rank, ranks);
  reduction.source_count = reduction.target_count = reduction.pairs = 0;
  if (shape.in_pairs) {
    list_pairs(places, reduction);
  } else {
    list(places, givers_of(shape, rank, ranks), getters_of(shape, rank, ranks), reduction);
  }
  // Its share is told of all the same.
  if (reduction.source_count == 0 || reduction.target_count == 0) {
    reduction.source_count = reduction.target_count = 0;
    reduction.count = reduction.shared ? reduction.count : 0;
  }
}

}  // namespace accord::device
