// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/direct_plan.h"

#include <algorithm>
#include <numeric>

#include "node/offers.h"

namespace accord::node {

DirectPlan::DirectPlan(const Call& call, int rank, bool has_kernels)
    : call_(call), geometry_(call), rank_(rank), form_(choose_form(has_kernels)) {}

// Kernels store into peers' memory while they read from it, so one step does for what would be two.
// A broadcast among two has nothing to share. Engines move long blocks faster than kernels, and
// faster into a peer's memory than out of it (4 x H200, 64 MiB blocks: 379 and 361 GB/s; kernels
// 349 and 322): so what kernels of long reductions would read out of peers' memory is fetched
// before.
DirectForm DirectPlan::choose_form(bool has_kernels) const noexcept {
  const bool is_long = contribution(false).length_bytes >= call_.spread_bytes;
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
  return form_ != DirectForm::copies || geometry_.puts_in(rank);
}

int DirectPlan::readers_of_in() const noexcept {
  const Pattern& pattern = geometry_.pattern();
  if (!geometry_.puts_in(rank_) || stores_own()) return kNobody;
  if (!pattern.to_root || form_ == DirectForm::shares || is_spread()) return kEveryone;
  return is_root() ? kNobody : call_.root;
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
  if (contribution(in_place).length_bytes == 0) return false;
  return reduces() || readers_of_in() != kNobody || has_own_move(in_place) || stores_own();
}

// Copies go to any memory, kernels do not.
bool DirectPlan::needs_out() const noexcept {
  return form_ != DirectForm::copies && has_result(rank_);
}

bool DirectPlan::has_own_move(bool in_place) const noexcept {
  return !by_kernel() && !reduces() && geometry_.moves(rank_, rank_) &&
         !geometry_.keeps_own_block(rank_, in_place);
}

// Of a result that several ranks make together.
Share DirectPlan::equal_share(int rank) const {
  const int size = call_.size;
  const int workers = burdens_root() ? 1 : spares_root() ? size - 1 : size;
  const int place = burdens_root()  ? (rank - call_.root + size) % size
                    : spares_root() ? (rank - call_.root - 1 + size) % size
                                    : rank;
  if (place >= workers) return {};
  const Range part = even_share(call_.block_bytes, place, workers, granule_bytes());
  return {part.first_bytes, part.first_bytes, part.length_bytes};
}

Share DirectPlan::share(int rank) const {
  const std::size_t bytes = geometry_.length(rank);
  if (call_.kind == Kind::allgather) return {0, geometry_.first(rank), bytes};
  if (scatters_result()) return {geometry_.first(rank), 0, bytes};
  if (form_ == DirectForm::shares || is_spread()) return equal_share(rank);
  return {0, 0, has_result(rank) ? bytes : 0};
}

std::vector<int> DirectPlan::sources() const {
  if (call_.kind == Kind::bcast) return {call_.root};
  if (call_.kind == Kind::allgather) return {rank_};
  const int before = call_.kind == Kind::exscan ? rank_ : rank_ + 1;
  std::vector<int> ranks(
      static_cast<std::size_t>(geometry_.pattern().is_prefix ? before : call_.size));
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

std::vector<Move> DirectPlan::moves(bool in_place) const {
  const bool pushes = form_ == DirectForm::pushes;
  std::vector<Move> moves;
  for (int step = 0; step < call_.size; ++step) {
    const int peer = (rank_ + step) % call_.size;  // not all from, or to, the same peer at once
    const int from = pushes ? rank_ : peer;
    const int to = pushes ? peer : rank_;
    const std::size_t length = geometry_.length(from, to);
    if (!geometry_.moves(from, to) || length == 0) continue;
    if (peer == rank_ && !has_own_move(in_place)) continue;
    const std::size_t in = geometry_.place_in(to);
    const std::size_t out = geometry_.place_out(from);
    moves.push_back({peer, pushes ? out : in, pushes ? in : out, length});
  }
  return moves;
}

}  // namespace accord::node
