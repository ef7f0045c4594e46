// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/placement.h"

#include <algorithm>
#include <map>
#include <utility>

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

int size_of(const std::vector<int>& ranks) { return static_cast<int>(ranks.size()); }

}  // namespace

Placement Placement::of(std::span<const std::uint64_t> node_numbers) {
  Placement placement;
  std::vector<std::uint64_t> known;
  for (std::size_t rank = 0; rank < node_numbers.size(); ++rank) {
    const auto found = std::ranges::find(known, node_numbers[rank]);
    const auto node = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) {
      known.push_back(node_numbers[rank]);
      placement.members.emplace_back();
    }
    placement.node_of.push_back(static_cast<int>(node));
    placement.members[node].push_back(static_cast<int>(rank));
  }
  return placement;
}

Placement Placement::of(std::span<const node::Record> records) {
  std::vector<std::uint64_t> nodes;
  std::map<std::uint64_t, std::vector<device::KernelPlace>> kernels;
  for (const node::Record& record : records) {
    nodes.push_back(record.node);
    kernels[record.node].push_back(record.kernels);
  }
  Placement placement = of(nodes);
  placement.shares_devices = std::ranges::any_of(
      kernels, [](const auto& node) { return device::take_turns(node.second); });
  placement.has_rdma = std::ranges::all_of(records, [](const auto& one) { return one.has_rdma; });
  return placement;
}

int Placement::local_rank(int rank) const {
  const std::vector<int>& ranks = beside(rank);
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

bool Placement::in_order() const { return std::ranges::is_sorted(node_of); }

int Placement::fewest() const {
  return size_of(*std::ranges::min_element(members, {}, &std::vector<int>::size));
}

int Placement::most() const {
  return size_of(*std::ranges::max_element(members, {}, &std::vector<int>::size));
}

std::size_t Placement::parcel_bytes(std::size_t asked_bytes) const noexcept {
  if (asked_bytes != kParcelBytesAuto) return asked_bytes;
  if (has_rdma) return kParcelBytesOfRdma;
  return shares_devices ? kParcelBytesInTurns : kParcelBytes;
}

}  // namespace accord::core
