// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the leaders of a two-level plan send each other. All messages of a round are independent:
// what is for all nodes, or of all of them, goes in as many parts as there are nodes, so that no
// link carries more than it must.
#include <algorithm>

#include "coll/inter/plan.h"

namespace accord::coll {

using node::Range;

std::vector<TwoLevelPlan::Round> TwoLevelPlan::rounds(std::size_t chunk,
                                                      std::size_t& parcel_bytes) const {
  std::vector<Round> made = rounds_by_node(cut(chunk, local_rank_), parcel_bytes);
  for (Round& round : made) pair_up(round);
  return made;
}

std::vector<TwoLevelPlan::Round> TwoLevelPlan::rounds_by_node(Cut own,
                                                              std::size_t& parcel_bytes) const {
  parcel_bytes = length_of_all(own);
  if (of_pairs()) return pair_rounds(own, parcel_bytes);
  if (pattern().is_prefix) return prefix_rounds(own, parcel_bytes);
  if (pattern().reduces) return reduction_rounds(own, parcel_bytes);
  return pattern().is_whole() ? bcast_rounds(own) : block_rounds(own);
}

// Nobody is everybody's first: in each step two nodes have each other. Where all went to the first
// node first, what is for the last one would come only once all others have been served.
void TwoLevelPlan::pair_up(Round& round) const {
  std::ranges::stable_sort(round.messages, {}, [this](const Message& message) {
    return (placement_.node(message.peer) + node_) % placement_.nodes();
  });
}

void TwoLevelPlan::exchange(Round& round, int node, Range sent, Range received) const {
  const int peer = leader_on(node);
  if (received.length_bytes != 0)
    round.messages.push_back({peer, false, received.first_bytes, received.length_bytes});
  if (sent.length_bytes != 0)
    round.messages.push_back({peer, true, sent.first_bytes, sent.length_bytes});
}

// Each node gets its share from all others and reduces it.
TwoLevelPlan::Round TwoLevelPlan::reduction(const std::vector<Range>& shares,
                                            std::size_t parcel_end) const {
  const Range own = shares[static_cast<std::size_t>(node_)];
  Round round;
  Reduction made{.sources = {}, .result_bytes = own.first_bytes, .length_bytes = own.length_bytes};
  for (int node = 0; node < placement_.nodes(); ++node) {
    if (node == node_) {
      made.sources.push_back(own.first_bytes);
      continue;
    }
    exchange(round, node, shares[static_cast<std::size_t>(node)], {parcel_end, own.length_bytes});
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
  std::vector<Round> made{reduction(shares, parcel_bytes)};
  parcel_bytes += mine.length_bytes * (shares.size() - 1);
  if (!whole) return made;
  // The results, to all nodes or to that of the root.
  Round results;
  for (int node = 0; node < placement_.nodes(); ++node) {
    const bool all = !pattern().to_root;
    if (node == node_) continue;
    const Range theirs = shares[static_cast<std::size_t>(node)];
    exchange(results, node, all || node == placement_.node(call_.root) ? mine : Range(),
             all || is_on_root_node() ? theirs : Range());
  }
  made.push_back(std::move(results));
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
