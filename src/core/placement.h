// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which ranks of a communicator share a node, and what these nodes are like. Equal on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "node/group.h"

namespace accord::core {

struct Placement {
  // As many as suit the nodes.
  static constexpr std::size_t kParcelBytesAuto = std::numeric_limits<std::size_t>::max();

  std::vector<int> node_of;               // by rank; nodes are numbered as their first ranks come
  std::vector<std::vector<int>> members;  // by node: its ranks, in their order
  bool shares_devices = false;            // ranks of some node do, and take turns there
  bool has_rdma = false;                  // every node has an adapter that does

  // By rank, numbers that are equal for ranks of one node.
  static Placement of(std::span<const std::uint64_t> node_numbers);
  // By rank, what it has told the others.
  static Placement of(std::span<const node::Record> records);

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
  // What a rank should send one of another node at a time, at most: no more than `asked_bytes`.
  std::size_t parcel_bytes(std::size_t asked_bytes) const noexcept;
};

}  // namespace accord::core
