// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/schedule.h"

#include <bit>
#include <deque>
#include <utility>

namespace accord::partitioned {
namespace {

// From here on the bytes of a partition matter more than the steps it takes: each costs two copies
// and a message, which take as long to begin as some hundred thousand bytes.
constexpr std::size_t kRingBytes = 1 << 20;

constexpr Place kContribution{.area = Area::contribution};
constexpr Place kResult{.area = Area::result};
constexpr Place kWork{.area = Area::work};

Step take(int from, Combine combine, const Place& into) {
  Step step;
  step.from = from;
  step.combine = combine;
  step.into = into;
  return step;
}
Step take_own(int rank, const Place& own, Combine combine, const Place& into) {
  Step step = take(rank, combine, into);
  step.own = own;
  return step;
}
Step give(int peer, const Place& place) {
  Step step;
  step.outgoing.push_back({peer, place});
  return step;
}

// A binomial tree whose root has the number 0: the parent of a number is that without its lowest
// bit, so that the numbers below any node follow its own.
int parent_of(int number) { return number & (number - 1); }
// From the nearest child on.
std::vector<int> children_of(int number, int size) {
  std::vector<int> children;
  for (int bit = 1; (number & bit) == 0 && number + bit < size; bit *= 2)
    children.push_back(number + bit);
  return children;
}

// Ranks by their numbers in such a tree.
struct Tree {
  int size;
  int root;
  int number_of(int rank) const { return (rank - root + size) % size; }
  int rank_of(int number) const { return (number + root) % size; }
};

// The farthest child first, since it has the most to pass on.
void append_broadcast(Schedule& schedule, int rank, const Tree& tree, const Place& at_root,
                      const Place& elsewhere) {
  const int number = tree.number_of(rank);
  if (number != 0)
    schedule.push_back(take(tree.rank_of(parent_of(number)), Combine::store, elsewhere));
  const std::vector<int> children = children_of(number, tree.size);
  if (children.empty()) return;
  Step& step = schedule.emplace_back();
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    step.outgoing.push_back({tree.rank_of(*child), number == 0 ? at_root : elsewhere});
}

// What is in all ranks' work, into that of the root of the tree: the nearest child first, which has
// the ranks that come next.
void append_reduction(Schedule& schedule, int rank, const Tree& tree) {
  const int number = tree.number_of(rank);
  for (const int child : children_of(number, tree.size))
    schedule.push_back(take(tree.rank_of(child), Combine::after, kWork));
  if (number != 0) schedule.push_back(give(tree.rank_of(parent_of(number)), kWork));
}

// The same into that of the last rank, in rank order.
void append_chain(Schedule& schedule, int rank, int size) {
  if (rank > 0) schedule.push_back(take(rank - 1, Combine::before, kWork));
  if (rank + 1 < size) schedule.push_back(give(rank + 1, kWork));
}

// Of an allreduce around the ring: whole elements, a share for each rank.
Place share(const ReductionOutline& outline, int number) {
  const auto size = static_cast<std::size_t>(outline.size);
  const auto index =
      static_cast<std::size_t>((number % outline.size + outline.size) % outline.size);
  const std::size_t first = outline.count * index / size;
  Place place = kWork;
  place.first = first;
  place.count = outline.count * (index + 1) / size - first;
  return place;
}

// In step i a rank passes on what it has got in the step before; after size - 1 of them share
// rank + 1 is complete here.
void append_ring(Schedule& schedule, const ReductionOutline& outline) {
  const int next = (outline.rank + 1) % outline.size;
  const int previous = (outline.rank + outline.size - 1) % outline.size;
  const int turns = outline.size - 1;
  for (int i = 0; i < 2 * turns; ++i) {
    Step step = take(previous, i < turns ? Combine::before : Combine::store,
                     share(outline, outline.rank - i - 1));
    step.outgoing.push_back({next, share(outline, outline.rank - i)});
    schedule.push_back(std::move(step));
  }
}

bool goes_around(const ReductionOutline& outline) {
  return outline.commutative && !outline.in_rank_order && outline.size > 2 &&
         outline.count >= static_cast<std::size_t>(outline.size) &&
         outline.count * outline.element_bytes >= kRingBytes;
}

Schedule begun_with_own(int rank) { return {take_own(rank, kContribution, Combine::store, kWork)}; }

// What a rank has is at each time the result of a number of neighbours, of which it is one, and it
// exchanges that with a rank that has the one of as many next to these: any order of operands is
// kept, and both have the same bits. Of ranks beyond a power of two the first ones join by pairs,
// the higher for both. What is given first goes before this rank's own is put where it works.
void append_doubling(Schedule& schedule, const ReductionOutline& outline) {
  const int rank = outline.rank;
  const int members = static_cast<int>(std::bit_floor(static_cast<unsigned>(outline.size)));
  const int pairs = outline.size - members;
  const bool is_paired = rank < 2 * pairs;
  if (is_paired && rank % 2 == 0) {
    schedule = {give(rank + 1, kContribution), take(rank + 1, Combine::store, kWork)};
    return;
  }
  if (is_paired) schedule.push_back(take(rank - 1, Combine::before, kWork));
  const int number = is_paired ? rank / 2 : rank - pairs;
  for (int distance = 1; distance < members; distance *= 2) {
    const int other = number ^ distance;
    const int partner = other < pairs ? 2 * other + 1 : other + pairs;
    Step step = take(partner, partner < rank ? Combine::before : Combine::after, kWork);
    const bool is_first = schedule.size() == 1;
    Step& giving = is_first ? schedule.front() : step;
    giving.outgoing.push_back({partner, is_first ? kContribution : kWork});
    schedule.push_back(std::move(step));
  }
  if (is_paired) schedule.push_back(give(rank - 1, kWork));
}

}  // namespace

Schedule direct_schedule(int rank, const std::vector<Outgoing>& outgoing,
                         const std::vector<Incoming>& incoming) {
  Schedule schedule;
  std::deque<Place> own;
  Step& first = schedule.emplace_back();
  for (const Outgoing& one : outgoing) {
    if (one.peer == rank) {
      own.push_back(one.place);
    } else {
      first.outgoing.push_back(one);
    }
  }
  for (const Incoming& one : incoming) {
    Step step = take(one.peer, Combine::store, one.place);
    if (one.peer == rank) {
      if (own.empty()) continue;
      step.own = own.front();
      own.pop_front();
    }
    schedule.push_back(std::move(step));
  }
  return schedule;
}

// Not all to, or from, the same rank at once.
Schedule block_schedule(const node::Call& call, int rank, bool keeps_own) {
  const node::Geometry geometry(call);
  const node::Pattern& pattern = geometry.pattern();
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int i = keeps_own ? 1 : 0; i < call.size; ++i) {
    const int to = (rank + i) % call.size;
    if (geometry.moves(rank, to))
      outgoing.push_back({to, {.area = Area::contribution, .block = pattern.blocks_in ? to : 0}});
    const int from = (rank + call.size - i) % call.size;
    if (geometry.moves(from, rank))
      incoming.push_back({from, {.area = Area::result, .block = pattern.blocks_out ? from : 0}});
  }
  return direct_schedule(rank, outgoing, incoming);
}

Schedule broadcast_schedule(int rank, int size, int root) {
  Schedule schedule;
  append_broadcast(schedule, rank, {size, root}, kContribution, kResult);
  return schedule;
}

Schedule allreduce_schedule(const ReductionOutline& outline) {
  Schedule schedule = begun_with_own(outline.rank);
  if (goes_around(outline)) {
    append_ring(schedule, outline);
  } else if (outline.in_rank_order && outline.size > 2) {
    append_chain(schedule, outline.rank, outline.size);
    append_broadcast(schedule, outline.rank, {outline.size, outline.size - 1}, kWork, kWork);
  } else {
    append_doubling(schedule, outline);
  }
  schedule.push_back(take_own(outline.rank, kWork, Combine::store, kResult));
  return schedule;
}

Schedule reduce_schedule(const ReductionOutline& outline, int root) {
  Schedule schedule = begun_with_own(outline.rank);
  int holder = root;
  if (outline.in_rank_order) {
    holder = outline.size - 1;
    append_chain(schedule, outline.rank, outline.size);
  } else {
    // Numbers in the tree are ranks, in order, where that matters.
    if (!outline.commutative) holder = 0;
    append_reduction(schedule, outline.rank, {outline.size, holder});
  }
  if (outline.rank == holder && holder != root) schedule.push_back(give(root, kWork));
  if (outline.rank == root) {
    schedule.push_back(holder == root ? take_own(root, kWork, Combine::store, kResult)
                                      : take(holder, Combine::store, kResult));
  }
  return schedule;
}

Schedule scan_schedule(const ReductionOutline& outline) {
  Schedule schedule = begun_with_own(outline.rank);
  append_chain(schedule, outline.rank, outline.size);
  schedule.push_back(take_own(outline.rank, kWork, Combine::store, kResult));
  return schedule;
}

// The contribution is put aside first, since the result may lie in its place.
Schedule exscan_schedule(const ReductionOutline& outline) {
  Schedule schedule = begun_with_own(outline.rank);
  const bool is_last = outline.rank + 1 == outline.size;
  if (outline.rank > 0) {
    schedule.push_back(take(outline.rank - 1, Combine::store, kResult));
    if (!is_last) schedule.push_back(take_own(outline.rank, kResult, Combine::before, kWork));
  }
  if (!is_last) schedule.push_back(give(outline.rank + 1, kWork));
  return schedule;
}

Schedule reduce_scatter_schedule(int rank, int size, bool in_place) {
  Schedule schedule;
  const auto block = [](int of) { return Place{.area = Area::contribution, .block = of}; };
  Step& first = schedule.emplace_back();
  for (int i = 1; i < size; ++i) {
    const int peer = (rank + i) % size;
    first.outgoing.push_back({peer, block(peer)});
  }
  for (int from = 0; from < size; ++from) {
    const Combine combine = from == 0 ? Combine::store : Combine::after;
    schedule.push_back(from == rank ? take_own(rank, block(rank), combine, kWork)
                                    : take(from, combine, kWork));
  }
  schedule.push_back(take_own(rank, kWork, Combine::store, kResult));
  schedule.back().together = in_place;
  return schedule;
}

}  // namespace accord::partitioned
