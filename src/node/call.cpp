// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/call.h"

#include <algorithm>
#include <numeric>

#include "base/rounding.h"

namespace accord::node {

Geometry::Geometry(const Call& call)
    : kind_(call.kind),
      pattern_(pattern_of(call.kind)),
      size_(call.size),
      root_(call.root),
      block_bytes_(call.block_bytes) {
  if (call.blocks_bytes.empty()) return;
  firsts_.resize(call.blocks_bytes.size() + 1);
  std::inclusive_scan(call.blocks_bytes.begin(), call.blocks_bytes.end(), firsts_.begin() + 1);
}

// The root of a bcast has it; before the first rank there is nothing.
bool Geometry::gets_out(int rank) const noexcept {
  if (kind_ == Kind::bcast) return rank != root_;
  if (kind_ == Kind::exscan) return rank > 0;
  return !pattern_.to_root || rank == root_;
}

Range Geometry::contribution(int rank, bool in_place) const noexcept {
  const bool keeps = keeps_own_block(rank, in_place);
  if (!puts_in(rank) || (keeps && pattern_.to_root)) return {};
  if (pattern_.blocks_in) return {0, all_bytes()};
  return {keeps ? first(rank) : 0, length(rank)};
}

Range Geometry::result(int rank, bool in_place) const noexcept {
  if (!gets_out(rank) || (keeps_own_block(rank, in_place) && pattern_.from_root)) return {};
  return {0, pattern_.blocks_out ? all_bytes() : length(rank)};
}

std::size_t granule_bytes(const Call& call) noexcept {
  const std::size_t element_bytes = device::element_bytes(call.element);
  return element_bytes == 0 ? kLineBytes : std::lcm(kLineBytes, element_bytes);
}

Range even_share(std::size_t bytes, int number, int count, std::size_t granule_bytes) noexcept {
  return part_of(bytes, static_cast<std::size_t>(number),
                 round_up(divide_up(bytes, static_cast<std::size_t>(count)), granule_bytes));
}

Range part_of(std::size_t bytes, std::size_t number, std::size_t part_bytes) noexcept {
  const std::size_t low = std::min(bytes, number * part_bytes);
  return {low, std::min(part_bytes, bytes - low)};
}

}  // namespace accord::node
