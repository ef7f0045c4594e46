// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which ranks of a communicator share a node. Equal on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace accord::core {

struct Placement {
  std::vector<int> node_of;               // by rank; nodes are numbered as their first ranks come
  std::vector<std::vector<int>> members;  // by node: its ranks, in their order

  // By rank, numbers that are equal for ranks of one node.
  static Placement of(std::span<const std::uint64_t> node_numbers);

  int ranks() const noexcept { return static_cast<int>(node_of.size()); }
  int nodes() const noexcept { return static_cast<int>(members.size()); }
  int node(int rank) const { return node_of[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& on(int node) const { return members[static_cast<std::size_t>(node)]; }
  const std::vector<int>& beside(int rank) const { return on(node(rank)); }
  // The number of `rank` among those of its node.
  int local_rank(int rank) const;
  // Whether all ranks of a node come before those of the next.
  bool in_order() const;
  // Ranks of the node that has the fewest, and the most.
  int fewest() const;
  int most() const;
};

}  // namespace accord::core
