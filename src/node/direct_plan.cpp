// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/direct_plan.h"

#include <algorithm>
#include <numeric>

#include "node/offers.h"

namespace accord::node {
namespace {

constexpr std::size_t kLineBytes = 256;

bool is_scan(Kind kind) { return kind == Kind::scan || kind == Kind::exscan; }
bool gathers_all(Kind kind) { return kind == Kind::allgather || kind == Kind::allgatherv; }

}  // namespace

DirectPlan::DirectPlan(const Call& call, int rank, bool has_kernels)
    : call_(call), rank_(rank), form_(choose_form(has_kernels)) {}

// Kernels store into peers' memory while they read from it, so one step does for what would be two.
// A broadcast among two has nothing to share. Engines move long blocks faster than kernels, and
// faster into a peer's memory than out of it (4 x H200, 64 MiB blocks: 379 and 361 GB/s; kernels
// 349 and 322): so what kernels of long reductions would read out of peers' memory is fetched
// before.
DirectForm DirectPlan::choose_form(bool has_kernels) const noexcept {
  const bool is_long = contribution_length_bytes() >= call_.spread_bytes;
  switch (call_.kind) {
    case Kind::allreduce:
    case Kind::reduce:
      if (call_.block_bytes <= call_.one_shot_bytes) return DirectForm::own_result;
      return is_long ? DirectForm::spread : DirectForm::shares;
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
      return is_long ? DirectForm::spread : DirectForm::own_result;
    case Kind::bcast:
      return has_kernels && call_.size > 2 ? DirectForm::shares : DirectForm::copies;
    case Kind::allgather:
      return has_kernels && call_.block_bytes < call_.engine_bytes ? DirectForm::shares
                                                                   : DirectForm::pushes;
    case Kind::alltoall:
      return DirectForm::pushes;
    default:
      return reduces() ? DirectForm::own_result : DirectForm::copies;
  }
}

bool DirectPlan::spares_root() const noexcept {
  return call_.kind == Kind::bcast || (call_.kind == Kind::reduce && call_.size > 2);
}

bool DirectPlan::decides(int rank) const noexcept {
  const bool from_root =
      call_.kind == Kind::scatter || (call_.kind == Kind::bcast && form_ == DirectForm::copies);
  return !from_root || rank == call_.root;
}

int DirectPlan::readers_of_in() const noexcept {
  switch (call_.kind) {
    case Kind::bcast:
    case Kind::scatter:
      return is_root() ? kEveryone : kNobody;
    case Kind::gather:
      return is_root() ? kNobody : call_.root;
    case Kind::reduce:
      if (form_ == DirectForm::shares || is_spread()) return kEveryone;
      return is_root() ? kNobody : call_.root;
    case Kind::allgather:
    case Kind::alltoall:
      return kNobody;
    default:
      return kEveryone;
  }
}

int DirectPlan::writers_of_out() const noexcept {
  const bool from_outside = form_ == DirectForm::shares || form_ == DirectForm::pushes ||
                            (is_spread() && !scatters_result());
  return from_outside && needs_out() ? kEveryone : kNobody;
}

bool DirectPlan::is_touched_by(int peer) const noexcept {
  for (const int who : {readers_of_in(), writers_of_out()}) {
    if (who == kEveryone || who == peer) return true;
  }
  return false;
}

bool DirectPlan::needs_in(bool in_place) const noexcept {
  if (contribution_length_bytes() == 0) return false;
  return reduces() || readers_of_in() != kNobody || has_own_move(in_place) ||
         call_.kind == Kind::allgather;
}

// Copies go to any memory, kernels do not.
bool DirectPlan::needs_out() const noexcept {
  return form_ != DirectForm::copies && has_result(rank_);
}

bool DirectPlan::has_result(int rank) const noexcept {
  switch (call_.kind) {
    case Kind::bcast:
      return rank != call_.root;
    case Kind::reduce:
      return rank == call_.root;
    case Kind::exscan:
      return rank > 0;
    default:
      return block_bytes_of(rank) > 0;
  }
}

bool DirectPlan::has_own_move(bool in_place) const noexcept {
  if (by_kernel()) return false;
  switch (call_.kind) {
    case Kind::alltoall:
      return true;
    case Kind::allgather:
    case Kind::allgatherv:
      return !in_place;
    case Kind::gather:
    case Kind::scatter:
      return is_root() && !in_place;
    default:
      return false;
  }
}

std::size_t DirectPlan::block_bytes_of(int rank) const noexcept {
  return call_.blocks_bytes.empty() ? call_.block_bytes
                                    : call_.blocks_bytes[static_cast<std::size_t>(rank)];
}

std::size_t DirectPlan::first_bytes_of(int rank) const noexcept {
  if (call_.blocks_bytes.empty()) return static_cast<std::size_t>(rank) * call_.block_bytes;
  return std::accumulate(call_.blocks_bytes.begin(), call_.blocks_bytes.begin() + rank,
                         std::size_t{0});
}

std::size_t DirectPlan::contribution_bytes(bool in_place) const noexcept {
  return gathers_all(call_.kind) && in_place ? first_bytes_of(rank_) : 0;
}

std::size_t DirectPlan::contribution_length_bytes() const noexcept {
  switch (call_.kind) {
    case Kind::scatter:
    case Kind::alltoall:
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
      return first_bytes_of(call_.size);
    default:
      return block_bytes_of(rank_);
  }
}

std::size_t DirectPlan::result_length_bytes() const noexcept {
  const bool of_all = call_.kind == Kind::allgather || call_.kind == Kind::alltoall;
  return of_all ? first_bytes_of(call_.size) : block_bytes_of(rank_);
}

// Some elements have 6 or 12 bytes.
std::size_t DirectPlan::granule_bytes() const noexcept {
  return std::lcm(kLineBytes, reduces() ? device::element_bytes(call_.element) : 1);
}

// Of a result that several ranks make together.
DirectShare DirectPlan::equal_share(int rank) const {
  const int size = call_.size;
  const auto workers = static_cast<std::size_t>(burdens_root()  ? 1
                                                : spares_root() ? size - 1
                                                                : size);
  const auto place =
      static_cast<std::size_t>(burdens_root()  ? (rank - call_.root + size) % size
                               : spares_root() ? (rank - call_.root - 1 + size) % size
                                               : rank);
  const std::size_t granule = granule_bytes();
  const std::size_t bytes = call_.block_bytes;
  const std::size_t step = (bytes + workers * granule - 1) / (workers * granule) * granule;
  const std::size_t low = std::min(bytes, place * step);
  const bool works = place < workers;
  return {low, low, works ? std::min(bytes, low + step) - low : 0};
}

DirectShare DirectPlan::share(int rank) const {
  const std::size_t bytes = block_bytes_of(rank);
  if (call_.kind == Kind::allgather) return {0, first_bytes_of(rank), bytes};
  if (scatters_result()) return {first_bytes_of(rank), 0, bytes};
  if (form_ == DirectForm::shares || is_spread()) return equal_share(rank);
  return {0, 0, has_result(rank) ? bytes : 0};
}

std::vector<int> DirectPlan::sources() const {
  if (call_.kind == Kind::bcast) return {call_.root};
  if (call_.kind == Kind::allgather) return {rank_};
  const int before = call_.kind == Kind::exscan ? rank_ : rank_ + 1;
  std::vector<int> ranks(static_cast<std::size_t>(is_scan(call_.kind) ? before : call_.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int> DirectPlan::targets() const {
  if (form_ == DirectForm::own_result || scatters_result()) return {rank_};
  if (call_.kind == Kind::reduce) return {call_.root};
  std::vector<int> ranks;
  for (int step = 0; step < call_.size; ++step) {
    const int peer = (rank_ + step) % call_.size;  // not all to the same peer at once
    if (call_.kind != Kind::bcast || peer != call_.root) ranks.push_back(peer);
  }
  return ranks;
}

std::vector<DirectMove> DirectPlan::moves(bool in_place) const {
  const std::size_t bytes = call_.block_bytes;
  const std::size_t own_block = first_bytes_of(rank_);
  std::vector<DirectMove> moves;
  switch (call_.kind) {
    case Kind::bcast:
      if (!is_root()) moves.push_back({call_.root, 0, 0, bytes});
      return moves;
    case Kind::scatter:
      if (!is_root() || !in_place) moves.push_back({call_.root, own_block, 0, bytes});
      return moves;
    case Kind::gather:
      if (!is_root()) return moves;
      break;
    default:
      break;
  }
  for (int step = 0; step < call_.size; ++step) {
    const int peer = (rank_ + step) % call_.size;  // not all from, or to, the same peer at once
    const std::size_t length = block_bytes_of(peer);
    if (length == 0 || (peer == rank_ && !has_own_move(in_place))) continue;
    if (form_ == DirectForm::pushes) {
      const std::size_t own = call_.kind == Kind::alltoall ? first_bytes_of(peer) : 0;
      moves.push_back({peer, own_block, own, length});
    } else {
      moves.push_back({peer, 0, first_bytes_of(peer), length});
    }
  }
  return moves;
}

}  // namespace accord::node
