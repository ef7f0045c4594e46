// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which ranks of a communicator share a node, and what these nodes are like. Equal on all of them.
// Copies share what has a size: 12 bytes a rank at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "node/group.h"

namespace accord::core {

class Placement {
 public:
  // As many as suit the nodes.
  static constexpr std::size_t kParcelBytesAuto = std::numeric_limits<std::size_t>::max();

  bool shares_devices = false;  // ranks of some node do, and take turns there
  bool has_rdma = false;        // every node has an adapter that does
  device::AdapterReach adapters = device::AdapterReach::none;  // the worst of the nodes

  Placement() = default;
  // By rank, numbers that are equal for ranks of one node. Each is looked up once.
  template <std::ranges::input_range Numbers>
  static Placement of_numbers(const Numbers& numbers) {
    std::unordered_map<std::ranges::range_value_t<Numbers>, int> known;
    std::vector<int> node_of;
    for (const auto& number : numbers)
      node_of.push_back(known.try_emplace(number, static_cast<int>(known.size())).first->second);
    return Placement(std::move(node_of), known.size());
  }
  static Placement of(std::span<const std::uint64_t> node_numbers) {
    return of_numbers(node_numbers);
  }
  // By rank, what it has told the others.
  static Placement of(std::span<const node::Record> records);

  int ranks() const noexcept { return static_cast<int>(map_->node_of.size()); }
  int nodes() const noexcept { return static_cast<int>(map_->begins.size()) - 1; }
  // Nodes are numbered as their first ranks come.
  int node(int rank) const { return map_->node_of[static_cast<std::size_t>(rank)]; }
  // The ranks of a node, in their order.
  std::span<const int> on(int node) const noexcept {
    const auto first = static_cast<std::size_t>(ranks_before(node));
    const auto end = static_cast<std::size_t>(ranks_before(node + 1));
    return std::span(map_->by_node).subspan(first, end - first);
  }
  std::span<const int> beside(int rank) const noexcept { return on(node(rank)); }
  // How many there are on the nodes before that one.
  int ranks_before(int node) const noexcept { return map_->begins[static_cast<std::size_t>(node)]; }
  // The number of `rank` among those of its node.
  int local_rank(int rank) const;
  // Whether all ranks of a node come before those of the next.
  bool in_order() const noexcept { return map_->in_order; }
  // Ranks of the node that has the fewest, and the most.
  int fewest() const noexcept { return map_->fewest; }
  int most() const noexcept { return map_->most; }
  // What a rank should send one of another node at a time, at most: no more than `asked_bytes`.
  std::size_t parcel_bytes(std::size_t asked_bytes) const noexcept;

 private:
  struct Map {
    std::vector<int> node_of;    // by rank
    std::vector<int> by_node;    // the ranks of the first node, then those of the next
    std::vector<int> begins{0};  // by node, where its ranks begin; and where all end
    int fewest = 0;
    int most = 0;
    bool in_order = true;
  };

  Placement(std::vector<int> node_of, std::size_t nodes);
  static const std::shared_ptr<const Map>& nobody();

  std::shared_ptr<const Map> map_ = nobody();
};

}  // namespace accord::core
