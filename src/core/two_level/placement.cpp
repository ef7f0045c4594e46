// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/two_level/placement.h"

#include <algorithm>

namespace accord::core {
namespace {

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

}  // namespace accord::core
