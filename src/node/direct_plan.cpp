// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/direct_plan.h"

#include <algorithm>
#include <numeric>

#include "node/offers.h"

namespace accord::node {
namespace {

// Shares are whole lines of whole elements, some of which have 6 or 12 bytes.
constexpr std::size_t kLineBytes = 256;

}  // namespace

// Of prefixes in place every rank would overwrite what others still read, and where blocks differ
// by rank they may lie anywhere.
bool DirectPlan::has(Kind kind) noexcept {
  switch (kind) {
    case Kind::scan:
    case Kind::exscan:
    case Kind::reduce_scatter:
    case Kind::allgatherv:
      return false;
    default:
      return true;
  }
}

bool DirectPlan::decides(const Call& call, int rank) noexcept {
  const bool from_root = call.kind == Kind::bcast || call.kind == Kind::scatter;
  return !from_root || rank == call.root;
}

int DirectPlan::readers_of_in() const noexcept {
  const bool is_root = rank_ == call_.root;
  switch (call_.kind) {
    case Kind::bcast:
    case Kind::scatter:
      return is_root ? kEveryone : kNobody;
    case Kind::gather:
      return is_root ? kNobody : call_.root;
    case Kind::reduce:
      if (!one_shot()) return kEveryone;
      return is_root ? kNobody : call_.root;
    default:
      return kEveryone;
  }
}

int DirectPlan::readers_of_out() const noexcept {
  return in_shares() && is_receiver() ? kEveryone : kNobody;
}

bool DirectPlan::is_read_by(int peer) const noexcept {
  for (const int readers : {readers_of_in(), readers_of_out()}) {
    if (readers == kEveryone || readers == peer) return true;
  }
  return false;
}

bool DirectPlan::needs_in(bool in_place) const noexcept {
  return reduces() || readers_of_in() != kNobody || has_own_move(in_place);
}

bool DirectPlan::has_own_move(bool in_place) const noexcept {
  switch (call_.kind) {
    case Kind::alltoall:
      return true;
    case Kind::allgather:
      return !in_place;
    case Kind::gather:
    case Kind::scatter:
      return rank_ == call_.root && !in_place;
    default:
      return false;
  }
}

std::size_t DirectPlan::contribution_bytes(bool in_place) const noexcept {
  return call_.kind == Kind::allgather && in_place
             ? static_cast<std::size_t>(rank_) * call_.block_bytes
             : 0;
}

std::size_t DirectPlan::contribution_length_bytes() const noexcept {
  switch (call_.kind) {
    case Kind::scatter:
    case Kind::alltoall:
    case Kind::reduce_scatter_block:
      return static_cast<std::size_t>(call_.size) * call_.block_bytes;
    default:
      return call_.block_bytes;
  }
}

DirectShare DirectPlan::share_of(int rank) const {
  const std::size_t bytes = call_.block_bytes;
  if (call_.kind == Kind::reduce_scatter_block)
    return {rank, static_cast<std::size_t>(rank) * bytes, 0, bytes};
  if (one_shot())
    return {rank, 0, 0, call_.kind == Kind::allreduce || rank == call_.root ? bytes : 0};
  const auto ranks = static_cast<std::size_t>(call_.size);
  const std::size_t granule = std::lcm(kLineBytes, device::element_bytes(call_.element));
  const std::size_t step = (bytes + ranks * granule - 1) / (ranks * granule) * granule;
  const std::size_t low = std::min(bytes, static_cast<std::size_t>(rank) * step);
  const std::size_t high = std::min(bytes, low + step);
  return {call_.kind == Kind::reduce ? call_.root : rank, low, low, high - low};
}

std::vector<DirectMove> DirectPlan::moves(bool in_place) const {
  const std::size_t bytes = call_.block_bytes;
  const std::size_t own_block = static_cast<std::size_t>(rank_) * bytes;
  const bool is_root = rank_ == call_.root;
  std::vector<DirectMove> moves;
  switch (call_.kind) {
    case Kind::bcast:
      if (!is_root) moves.push_back({call_.root, 0, 0, bytes});
      return moves;
    case Kind::scatter:
      if (!is_root || !in_place) moves.push_back({call_.root, own_block, 0, bytes});
      return moves;
    case Kind::gather:
      if (!is_root) return moves;
      break;
    case Kind::allreduce:
      if (!exchanges_results()) return moves;
      break;
    case Kind::reduce:
    case Kind::reduce_scatter_block:
      return moves;
    default:
      break;
  }
  for (int step = 0; step < call_.size; ++step) {
    const int peer = (rank_ + step) % call_.size;  // not all from the same peer at once
    if (exchanges_results()) {
      const DirectShare theirs = share_of(peer);
      if (peer != rank_ && theirs.length_bytes > 0)
        moves.push_back({peer, theirs.result_bytes, theirs.result_bytes, theirs.length_bytes});
    } else if (peer != rank_ || has_own_move(in_place)) {
      const std::size_t theirs = call_.kind == Kind::alltoall ? own_block : 0;
      moves.push_back({peer, theirs, static_cast<std::size_t>(peer) * bytes, bytes});
    }
  }
  return moves;
}

}  // namespace accord::node
