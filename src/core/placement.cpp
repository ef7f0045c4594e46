// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/placement.h"

#include <algorithm>
#include <numeric>

namespace accord::core {
namespace {

// By TCP more of it under way at once overfills a link's queue: two hosts of two ranks, over 2
// Gbit/s, got 88 % of it with parcels of up to 512 KiB, 83 % with 1 MiB and 75 % with 2 MiB.
// Shorter ones do not fill it better, and each costs a copy either way (bench/results/testbed).
constexpr std::size_t kParcelBytes = std::size_t{384} << 10;
// Where each copy of two ranks that use one device waits for its turn there, 300 us on an H200.
constexpr std::size_t kParcelBytesInTurns = std::size_t{1} << 20;
// These adapters have no such queues, and are as fast as copies are.
constexpr std::size_t kParcelBytesOfRdma = std::size_t{4} << 20;

}  // namespace

const std::shared_ptr<const Placement::Map>& Placement::nobody() {
  static const auto instance = std::make_shared<const Map>();
  return instance;
}

Placement::Placement(std::vector<int> node_of, std::size_t nodes) {
  const auto map = std::make_shared<Map>();
  map->node_of = std::move(node_of);
  map->in_order = std::ranges::is_sorted(map->node_of);
  map->begins.assign(nodes + 1, 0);
  for (const int node : map->node_of) ++map->begins[static_cast<std::size_t>(node) + 1];
  if (nodes != 0) {
    const auto [fewest, most] = std::ranges::minmax(std::span(map->begins).subspan(1));
    map->fewest = fewest;
    map->most = most;
  }
  std::inclusive_scan(map->begins.begin(), map->begins.end(), map->begins.begin());
  std::vector<int> next(map->begins);
  map->by_node.resize(map->node_of.size());
  for (std::size_t rank = 0; rank < map->node_of.size(); ++rank) {
    int& place = next[static_cast<std::size_t>(map->node_of[rank])];
    map->by_node[static_cast<std::size_t>(place++)] = static_cast<int>(rank);
  }
  map_ = map;
}

Placement Placement::of(std::span<const node::Record> records) {
  Placement placement = of_numbers(records | std::views::transform(&node::Record::node));
  std::vector<device::KernelPlace> kernels;
  for (int node = 0; node < placement.nodes() && !placement.shares_devices; ++node) {
    kernels.clear();
    for (const int rank : placement.on(node))
      kernels.push_back(records[static_cast<std::size_t>(rank)].kernels);
    placement.shares_devices = device::take_turns(kernels);
  }
  placement.has_rdma = std::ranges::all_of(records, [](const auto& one) { return one.has_rdma; });
  if (!records.empty())
    placement.adapters = std::ranges::min(records | std::views::transform(&node::Record::adapters));
  return placement;
}

int Placement::local_rank(int rank) const {
  const std::span<const int> ranks = beside(rank);
  return static_cast<int>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
}

std::size_t Placement::parcel_bytes(std::size_t asked_bytes) const noexcept {
  if (asked_bytes != kParcelBytesAuto) return asked_bytes;
  if (has_rdma) return kParcelBytesOfRdma;
  return shares_devices ? kParcelBytesInTurns : kParcelBytes;
}

}  // namespace accord::core
