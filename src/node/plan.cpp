// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/plan.h"

#include <algorithm>
#include <limits>

#include "base/rounding.h"

namespace accord::node {
namespace {

// Chunks, so that filling, reducing and fetching overlap: four of a medium message, eight of a long
// one, none shorter than is worth the 20 us of the CPU that its steps take (2 x H200: 16 MiB in
// chunks of 2 MiB took half as long again as in chunks of 4).
constexpr std::size_t kChunkBytesMin = std::size_t{2} << 20;
constexpr std::size_t kLongBytes = std::size_t{32} << 20;

}  // namespace

std::size_t chunk_bytes_wanted(std::size_t block_bytes) noexcept {
  const std::size_t chunks = block_bytes <= kLongBytes ? 4 : 8;
  return std::max(kChunkBytesMin, block_bytes / chunks);
}

Plan::Plan(const Call& call, std::size_t slot_bytes, Lanes lanes_are)
    : call_(call), geometry_(call), granule_bytes_(granule_bytes(call)) {
  const std::size_t room_bytes = slot_bytes / lanes() / granule_bytes_ * granule_bytes_;
  const std::size_t wanted_bytes = chunk_bytes_wanted(call.block_bytes);
  chunk_bytes_ =
      std::max(granule_bytes_, std::min(room_bytes, round_up(wanted_bytes, granule_bytes_)));
  const bool is_dense = lanes_are == Lanes::dense;
  lane_bytes_ = std::min(chunk_bytes_,
                         is_dense ? call.block_bytes : round_up(call.block_bytes, granule_bytes_));
  chunks_ = divide_up(call.block_bytes, chunk_bytes_);
  one_shot_ =
      reduces() && geometry_.pattern().is_whole() && call.block_bytes <= call.one_shot_bytes;
}

std::size_t Plan::slot_bytes_min(int size) noexcept {
  return kGranuleBytesMax * (static_cast<std::size_t>(size) + 1);
}

std::size_t Plan::slot_bytes_max(const Call& call) noexcept {
  const Plan plan(call, std::numeric_limits<std::size_t>::max());
  return std::max(slot_bytes_min(call.size), plan.lane_bytes_ * plan.lanes());
}

// Blocks that lie in a slot at the same time, results included.
std::size_t Plan::lanes() const noexcept {
  const std::size_t blocks =
      geometry_.pattern().blocks_in ? static_cast<std::size_t>(call_.size) : 1;
  return reduces() ? blocks + 1 : blocks;
}

bool Plan::result_is_own() const noexcept {
  return one_shot_ || geometry_.pattern().scatters_result() || geometry_.pattern().is_prefix;
}

bool Plan::has_own_block() const noexcept {
  const Pattern& pattern = geometry_.pattern();
  return call_.blocks_bytes.empty() && pattern.blocks_in && !pattern.from_root;
}

std::vector<Move> Plan::fills(int rank, bool in_place, std::size_t chunk) const {
  const std::size_t at = first(chunk);
  const Range own = geometry_.contribution(rank, in_place);
  if (own.length_bytes == 0) return {};
  if (!geometry_.pattern().blocks_in) return {{rank, 0, own.first_bytes + at, length(rank, chunk)}};
  std::vector<Move> moves;
  for (int peer = 0; peer < call_.size; ++peer) {
    if (peer == rank && geometry_.keeps_own_block(rank, in_place)) continue;
    moves.push_back({rank, lane(peer), geometry_.first(peer) + at, length(peer, chunk)});
  }
  return moves;
}

std::vector<Move> Plan::pulls(int rank, bool in_place, std::size_t chunk) const {
  const std::size_t at = first(chunk);
  std::vector<Move> moves;
  if (!geometry_.gets_out(rank)) return moves;
  if (result_is_own()) {
    const Share own = share(rank, chunk);
    if (own.length_bytes > 0) moves.push_back({rank, own.result_bytes, at, own.length_bytes});
    return moves;
  }
  const bool keeps = geometry_.keeps_own_block(rank, in_place);
  const bool has_lanes = geometry_.pattern().blocks_in;
  for (int step = 0; step < call_.size; ++step) {
    const int peer = (rank + step) % call_.size;  // not all from the same peer at once
    if (!geometry_.puts_in(peer) || (peer == rank && keeps)) continue;
    if (reduces()) {
      const Share theirs = share(peer, chunk);
      if (theirs.length_bytes > 0)
        moves.push_back({peer, theirs.result_bytes, at + theirs.source_bytes, theirs.length_bytes});
    } else {
      moves.push_back({peer, has_lanes ? lane(rank) : 0, geometry_.place_out(peer) + at,
                       length(has_lanes ? rank : peer, chunk)});
    }
  }
  return moves;
}

Share Plan::share(int rank, std::size_t chunk) const {
  const std::size_t bytes = length(rank, chunk);
  if (geometry_.pattern().scatters_result()) return {lane(rank), lane(call_.size), bytes};
  if (one_shot_) return {0, lane_bytes_, geometry_.gets_out(rank) ? bytes : 0};
  if (geometry_.pattern().is_prefix) return {0, lane_bytes_, sources(rank) > 0 ? bytes : 0};
  const Range part = even_share(bytes, rank, call_.size, granule_bytes_);
  return {part.first_bytes, lane_bytes_ + part.first_bytes, part.length_bytes};
}

int Plan::sources(int rank) const noexcept {
  if (call_.kind == Kind::scan) return rank + 1;
  return call_.kind == Kind::exscan ? rank : call_.size;
}

}  // namespace accord::node
