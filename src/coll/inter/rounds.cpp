// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the leaders of a two-level plan send each other. All messages of a round are independent:
// what is for all nodes, or of all of them, goes in as many parts as there are nodes, so that no
// link carries more than it must. In an allreduce of many nodes these messages would be many and
// short: the nodes then are a grid, and each has such rounds with those of its line, one dimension
// after the other. A line of the first dimension is of nodes next to each other, so that sums of
// lines stand in the order of the nodes.
#include <algorithm>
#include <iterator>

#include "coll/inter/plan.h"

namespace accord::coll {

using node::Range;

std::vector<int> grid_of(int nodes, int line_max) {
  std::vector<int> factors;  // primes, the largest first
  for (int left = nodes, factor = 2; left > 1; ++factor) {
    if (factor * factor > left) factor = left;
    for (; left % factor == 0; left /= factor) factors.insert(factors.begin(), factor);
  }
  if (factors.empty()) return {1};
  for (std::size_t dimensions = 1;; ++dimensions) {
    std::vector<int> lines(dimensions, 1);
    for (const int factor : factors) *std::ranges::min_element(lines) *= factor;
    if (std::ranges::max(lines) <= std::max(line_max, factors.front())) return lines;
  }
}

std::vector<TwoLevelPlan::Round> TwoLevelPlan::rounds(std::size_t chunk,
                                                      std::size_t& parcel_bytes) const {
  const Cut own = cut(chunk, local_rank_);
  parcel_bytes = length_of_all(own);
  if (goes_by_grid()) return grid_rounds(parcel_bytes);
  std::vector<Round> made = rounds_by_node(own, parcel_bytes);
  for (Round& round : made) pair_up(round, all_nodes());
  return made;
}

std::vector<TwoLevelPlan::Round> TwoLevelPlan::rounds_by_node(Cut own,
                                                              std::size_t& parcel_bytes) const {
  if (of_pairs()) return pair_rounds(own, parcel_bytes);
  if (pattern().is_prefix) return prefix_rounds(own, parcel_bytes);
  if (pattern().reduces) return reduction_rounds(own, parcel_bytes);
  return pattern().is_whole() ? bcast_rounds(own) : block_rounds(own);
}

// Nobody is everybody's first: in each step two nodes have each other. Where all went to the first
// node first, what is for the last one would come only once all others have been served.
void TwoLevelPlan::pair_up(Round& round, Line line) const {
  std::ranges::stable_sort(round.messages, {}, [&](const Message& message) {
    return (line.place(placement_.node(message.peer)) + line.place(node_)) % line.length;
  });
}

void TwoLevelPlan::exchange(Round& round, int node, Range sent, Range received) const {
  const int peer = leader_on(node);
  if (received.length_bytes != 0)
    round.messages.push_back({peer, false, received.first_bytes, received.length_bytes});
  if (sent.length_bytes != 0)
    round.messages.push_back({peer, true, sent.first_bytes, sent.length_bytes});
}

// Each node of a line gets its share from all others and reduces it.
TwoLevelPlan::Round TwoLevelPlan::reduction(Line line, const std::vector<Range>& shares,
                                            std::size_t parcel_end) const {
  const Range own = shares[static_cast<std::size_t>(line.place(node_))];
  Round round;
  Reduction made{.sources = {}, .result_bytes = own.first_bytes, .length_bytes = own.length_bytes};
  for (int place = 0; place < line.length; ++place) {
    if (line.node(place) == node_) {
      made.sources.push_back(own.first_bytes);
      continue;
    }
    exchange(round, line.node(place), shares[static_cast<std::size_t>(place)],
             {parcel_end, own.length_bytes});
    made.sources.push_back(parcel_end);
    parcel_end += own.length_bytes;
  }
  round.reductions.push_back(std::move(made));
  return round;
}

std::vector<TwoLevelPlan::Round> TwoLevelPlan::reduction_rounds(Cut own,
                                                                std::size_t& parcel_bytes) const {
  const bool whole = pattern().is_whole();
  const int nodes = placement_.nodes();
  std::vector<Range> shares;
  if (!whole) shares = blocks_of_nodes(own);
  for (int node = 0; whole && node < nodes; ++node)
    shares.push_back(node::even_share(parcel_bytes, node, nodes, granule_bytes_));
  const Range mine = shares[static_cast<std::size_t>(node_)];
  std::vector<Round> made{reduction(all_nodes(), shares, parcel_bytes)};
  parcel_bytes += mine.length_bytes * (shares.size() - 1);
  if (!whole) return made;
  // The results, to the node of the root.
  Round results;
  for (int node = 0; node < placement_.nodes(); ++node) {
    if (node == node_) continue;
    const Range theirs = shares[static_cast<std::size_t>(node)];
    exchange(results, node, node == placement_.node(call_.root) ? mine : Range(),
             is_on_root_node() ? theirs : Range());
  }
  made.push_back(std::move(results));
  return made;
}

// What a node has reduced in one dimension it shares out in the next. The results come back the
// other way round.
std::vector<TwoLevelPlan::Round> TwoLevelPlan::grid_rounds(std::size_t& parcel_bytes) const {
  const std::size_t parcel_end = parcel_bytes;
  Range own{0, parcel_end};
  std::vector<Round> made;
  std::vector<Round> results;
  int step = 1;
  for (const int length : grid_) {
    const Line line{.first = node_ - node_ / step % length * step, .step = step, .length = length};
    std::vector<Range> shares;
    for (int place = 0; place < length; ++place) {
      shares.push_back(node::even_share(own.length_bytes, place, length, granule_bytes_));
      shares.back().first_bytes += own.first_bytes;
    }
    own = shares[static_cast<std::size_t>(line.place(node_))];
    made.push_back(reduction(line, shares, parcel_end));
    Round& back = results.emplace_back();
    for (int place = 0; place < length; ++place)
      if (line.node(place) != node_)
        exchange(back, line.node(place), own, shares[static_cast<std::size_t>(place)]);
    for (Round* const round : {&made.back(), &back}) pair_up(*round, line);
    const auto others = static_cast<std::size_t>(length - 1);
    parcel_bytes = std::max(parcel_bytes, parcel_end + own.length_bytes * others);
    step *= length;
  }
  made.insert(made.end(), std::move_iterator(results.rbegin()), std::move_iterator(results.rend()));
  return made;
}

// Each other node gets a part of the root's, and then the others' parts from these.
std::vector<TwoLevelPlan::Round> TwoLevelPlan::bcast_rounds(Cut own) const {
  const int root_node = placement_.node(call_.root);
  const std::size_t bytes = length(0, own);
  const auto part_of = [&](int node) {
    const int index = node < root_node ? node : node - 1;
    return node::even_share(bytes, index, placement_.nodes() - 1, 1);
  };
  std::vector<Round> made(2);
  for (int node = 0; node < placement_.nodes(); ++node) {
    if (node == node_) continue;
    if (is_on_root_node()) {
      exchange(made[0], node, part_of(node), {});
    } else if (node == root_node) {
      exchange(made[0], node, {}, part_of(node_));
    } else {
      exchange(made[1], node, part_of(node_), part_of(node));
    }
  }
  return made;
}

std::vector<TwoLevelPlan::Round> TwoLevelPlan::pair_rounds(Cut own,
                                                           std::size_t& parcel_bytes) const {
  const std::size_t ranks_here = placement_.on(node_).size();
  const std::size_t sent_bytes = parcel_bytes * ranks_here;
  const std::vector<Range> blocks = blocks_of_nodes(own);
  std::vector<Round> made(1);
  for (int node = 0; node < placement_.nodes(); ++node) {
    const Range& block = blocks[static_cast<std::size_t>(node)];
    const std::size_t first = block.first_bytes * ranks_here;
    const std::size_t length = block.length_bytes * ranks_here;
    if (node != node_) exchange(made[0], node, {first, length}, {sent_bytes + first, length});
  }
  parcel_bytes = 2 * sent_bytes;
  return made;
}

// The nodes make a chain: each link carries what comes before a node once, however many they are.
std::vector<TwoLevelPlan::Round> TwoLevelPlan::prefix_rounds(Cut own,
                                                             std::size_t& parcel_bytes) const {
  const std::size_t bytes = length(0, own);
  const std::size_t ranks = placement_.on(node_).size();
  const std::size_t before = ranks * bytes;
  parcel_bytes = before + bytes;
  std::vector<Round> made(3);
  for (std::size_t number = 1; number < ranks; ++number) {
    const std::size_t place = number * bytes;
    made[0].reductions.push_back({{place - bytes, place}, place, bytes});
  }
  if (node_ > 0) {
    exchange(made[1], node_ - 1, {}, {before, bytes});
    for (std::size_t number = 0; number < ranks; ++number)
      made[1].reductions.push_back({{before, number * bytes}, number * bytes, bytes});
  }
  if (node_ + 1 < placement_.nodes()) exchange(made[2], node_ + 1, {before - bytes, bytes}, {});
  return made;
}

// Those of a node's ranks, to all nodes, to that of the root or from there.
std::vector<TwoLevelPlan::Round> TwoLevelPlan::block_rounds(Cut own) const {
  const std::vector<Range> blocks = blocks_of_nodes(own);
  const auto of_node = [&](int node) { return blocks[static_cast<std::size_t>(node)]; };
  const int root_node = placement_.node(call_.root);
  std::vector<Round> made(1);
  for (int node = 0; node < placement_.nodes(); ++node) {
    if (node == node_) continue;
    if (pattern().from_root) {
      exchange(made[0], node, is_on_root_node() ? of_node(node) : Range(),
               node == root_node ? of_node(node_) : Range());
      continue;
    }
    const bool all = !pattern().to_root;
    exchange(made[0], node, all || node == root_node ? of_node(node_) : Range(),
             all || is_on_root_node() ? of_node(node) : Range());
  }
  return made;
}

}  // namespace accord::coll
