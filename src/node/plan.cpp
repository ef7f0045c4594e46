// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace accord::node {
namespace {

// Where blocks start in a slot: kernels move 16 bytes at once, copy engines like whole lines.
constexpr std::size_t kAlignmentBytes = 256;
// Whole lines of whole elements, whatever the element: some have 6 or 12 bytes.
constexpr std::size_t kGranuleBytesMax = 3 * kAlignmentBytes;
// Chunks, so that filling, reducing and fetching overlap: four of a medium message, eight of a long
// one, none shorter than is worth the 20 us of the CPU that its steps take (2 x H200: 16 MiB in
// chunks of 2 MiB took half as long again as in chunks of 4).
constexpr std::size_t kChunkBytesMin = std::size_t{2} << 20;
constexpr std::size_t kLongBytes = std::size_t{32} << 20;

std::size_t granule_bytes(const Call& call) {
  const std::size_t element_bytes = device::element_bytes(call.element);
  return element_bytes == 0 ? kAlignmentBytes : std::lcm(kAlignmentBytes, element_bytes);
}

// Blocks that lie in a slot at the same time, results included.
std::size_t lanes(const Call& call) {
  const auto ranks = static_cast<std::size_t>(call.size);
  switch (call.kind) {
    case Kind::scatter:
    case Kind::alltoall:
      return ranks;
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return ranks + 1;
    case Kind::reduce:
    case Kind::allreduce:
    case Kind::scan:
    case Kind::exscan:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

std::size_t chunk_bytes_wanted(std::size_t block_bytes) noexcept {
  const std::size_t chunks = block_bytes <= kLongBytes ? 4 : 8;
  return std::max(kChunkBytesMin, block_bytes / chunks);
}

Plan::Plan(const Call& call, std::size_t slot_bytes)
    : call_(call), granule_bytes_(granule_bytes(call)) {
  const std::size_t room_bytes = slot_bytes / lanes(call) / granule_bytes_ * granule_bytes_;
  const std::size_t wanted_bytes = chunk_bytes_wanted(call.block_bytes);
  chunk_bytes_ = std::max(granule_bytes_, std::min(room_bytes, round_up(wanted_bytes)));
  lane_bytes_ = std::min(chunk_bytes_, round_up(call.block_bytes));
  chunks_ = (call.block_bytes + chunk_bytes_ - 1) / chunk_bytes_;
  const bool whole = call.kind == Kind::allreduce || call.kind == Kind::reduce;
  one_shot_ = whole && call.block_bytes <= call.one_shot_bytes;
  blocks_.resize(call.blocks_bytes.size());
  std::exclusive_scan(call.blocks_bytes.begin(), call.blocks_bytes.end(), blocks_.begin(),
                      std::size_t{0});
}

std::size_t Plan::slot_bytes_min(int size) noexcept {
  return kGranuleBytesMax * (static_cast<std::size_t>(size) + 1);
}

std::size_t Plan::slot_bytes_max(const Call& call) noexcept {
  const std::size_t lane_bytes = Plan(call, std::numeric_limits<std::size_t>::max()).lane_bytes_;
  return std::max(slot_bytes_min(call.size), lane_bytes * lanes(call));
}

bool Plan::reduces() const noexcept { return call_.op != device::ReduceOp::none; }

bool Plan::scatters_result() const noexcept {
  return call_.kind == Kind::reduce_scatter || call_.kind == Kind::reduce_scatter_block;
}

bool Plan::result_is_own() const noexcept {
  return one_shot_ || scatters_result() || call_.kind == Kind::scan || call_.kind == Kind::exscan;
}

bool Plan::has_own_block() const noexcept {
  return blocks_.empty() && (call_.kind == Kind::alltoall || scatters_result());
}

std::size_t Plan::block(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return blocks_.empty() ? at * call_.block_bytes : blocks_[at];
}

std::size_t Plan::length(int rank, std::size_t chunk) const {
  const std::size_t block_bytes = call_.blocks_bytes.empty()
                                      ? call_.block_bytes
                                      : call_.blocks_bytes[static_cast<std::size_t>(rank)];
  return std::min(chunk_bytes_, block_bytes - std::min(block_bytes, first(chunk)));
}

std::vector<Move> Plan::fills(int rank, bool in_place, std::size_t chunk) const {
  const std::size_t at = first(chunk);
  const std::size_t bytes = length(rank, chunk);
  const bool is_root = rank == call_.root;
  switch (call_.kind) {
    case Kind::bcast:
      return is_root ? std::vector<Move>{{rank, 0, at, bytes}} : std::vector<Move>{};
    case Kind::gather:
      return is_root && in_place ? std::vector<Move>{} : std::vector<Move>{{rank, 0, at, bytes}};
    case Kind::allgather:
    case Kind::allgatherv:
      return {{rank, 0, (in_place ? block(rank) : 0) + at, bytes}};
    case Kind::reduce:
    case Kind::allreduce:
    case Kind::scan:
    case Kind::exscan:
      return {{rank, 0, at, bytes}};
    case Kind::scatter:
      if (!is_root) return {};
      break;
    default:
      break;
  }
  std::vector<Move> moves;
  for (int peer = 0; peer < call_.size; ++peer) {
    if (call_.kind == Kind::scatter && in_place && peer == rank) continue;
    moves.push_back({rank, lane(peer), block(peer) + at, length(peer, chunk)});
  }
  return moves;
}

std::vector<Move> Plan::pulls(int rank, bool in_place, std::size_t chunk) const {
  const std::size_t at = first(chunk);
  const std::size_t bytes = length(rank, chunk);
  const bool is_root = rank == call_.root;
  std::vector<Move> moves;
  switch (call_.kind) {
    case Kind::bcast:
      if (!is_root) moves.push_back({call_.root, 0, at, bytes});
      return moves;
    case Kind::scatter:
      if (!is_root || !in_place) moves.push_back({call_.root, lane(rank), at, bytes});
      return moves;
    case Kind::gather:
    case Kind::reduce:
      if (!is_root) return moves;
      break;
    default:
      break;
  }
  if (result_is_own()) {
    const Share own = share(rank, chunk);
    if (own.length_bytes > 0) moves.push_back({rank, own.result_bytes, at, own.length_bytes});
    return moves;
  }
  for (int step = 0; step < call_.size; ++step) {
    const int peer = (rank + step) % call_.size;  // not all from the same peer at once
    switch (call_.kind) {
      case Kind::reduce:
      case Kind::allreduce: {
        const Share theirs = share(peer, chunk);
        if (theirs.length_bytes > 0)
          moves.push_back(
              {peer, theirs.result_bytes, at + theirs.offset_bytes, theirs.length_bytes});
        break;
      }
      case Kind::alltoall:
        moves.push_back({peer, lane(rank), block(peer) + at, bytes});
        break;
      default:  // gather, allgather, allgatherv
        if (!in_place || peer != rank)
          moves.push_back({peer, 0, block(peer) + at, length(peer, chunk)});
        break;
    }
  }
  return moves;
}

Share Plan::share(int rank, std::size_t chunk) const {
  const std::size_t bytes = length(rank, chunk);
  if (scatters_result())
    return {lane(rank), static_cast<std::size_t>(call_.size) * lane_bytes_, bytes};
  if (one_shot_)
    return {0, lane_bytes_, call_.kind == Kind::allreduce || rank == call_.root ? bytes : 0};
  if (call_.kind == Kind::scan || call_.kind == Kind::exscan)
    return {0, lane_bytes_, sources(rank) > 0 ? bytes : 0};
  // Whole lines, so that every share starts aligned; the last ranks may get none.
  const auto ranks = static_cast<std::size_t>(call_.size);
  const std::size_t step = round_up((bytes + ranks - 1) / ranks);
  const std::size_t low = std::min(bytes, static_cast<std::size_t>(rank) * step);
  const std::size_t high = std::min(bytes, low + step);
  return {low, lane_bytes_ + low, high - low};
}

int Plan::sources(int rank) const noexcept {
  if (call_.kind == Kind::scan) return rank + 1;
  return call_.kind == Kind::exscan ? rank : call_.size;
}

}  // namespace accord::node
