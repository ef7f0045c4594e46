// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/intra/spread_reduction.h"

#include <span>
#include <utility>

namespace accord::coll {

SpreadReduction::SpreadReduction(node::Group& group, const node::Call& call,
                                 const node::DirectPlan& plan, Ends ends)
    : group_(group),
      op_(call.op),
      element_(call.element),
      plan_(plan, group.rank(), group.slot_bytes() * node::Group::kSlots),
      ends_(std::move(ends)) {}

Status SpreadReduction::advance(bool& done) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int step = kFetch; step < kSteps; ++step) {
      Progress& progress = steps_[static_cast<std::size_t>(step)];
      const std::size_t ended = progress.ended;
      if (progress.is_under_way) ACCORD_TRY(poll(progress));
      moved = moved || progress.ended > ended;
      if (progress.is_under_way || !may_begin(static_cast<Step>(step))) continue;
      ACCORD_TRY(begin(static_cast<Step>(step), progress.ended));
      progress.is_under_way = true;
      moved = true;
    }
  }
  done = steps_[kStore].ended == plan_.pieces();
  return {};
}

void SpreadReduction::stop(bool& done) {
  done = true;
  for (Progress& progress : steps_) {
    if (!progress.is_under_way) continue;
    if (!poll(progress).ok()) progress = {};
    done = done && !progress.is_under_way;
  }
}

stages::Stage SpreadReduction::stage() const noexcept {
  return steps_[kReduce].is_under_way ? stages::Stage::reduce : stages::Stage::move;
}

// A piece is fetched into slots that the kernel has done with.
bool SpreadReduction::may_begin(Step step) const {
  const std::size_t piece = steps_[step].ended;
  if (piece == plan_.pieces()) return false;
  if (step == kFetch) return piece < steps_[kReduce].ended + node::SpreadPlan::kPiecesInRegion;
  return piece < steps_[step - 1].ended;
}

Status SpreadReduction::begin(Step step, std::size_t piece) {
  if (plan_.part(piece).length_bytes == 0) return {};
  if (step == kFetch) return begin_fetch(piece);
  return step == kReduce ? begin_reduce(piece) : begin_store(piece);
}

Status SpreadReduction::begin_fetch(std::size_t piece) {
  if (!plan_.fetches()) return {};
  const device::Copy copy{.dst = slot(piece),
                          .src = contribution(1 - group_.rank(), piece),
                          .row_bytes = plan_.part(piece).length_bytes};
  return group_.runtime().copy_begin(group_.device(), {&copy, 1}, steps_[kFetch].ticket);
}

// In the order of the ranks, as on every other way.
Status SpreadReduction::begin_reduce(std::size_t piece) {
  const node::Share part = plan_.part(piece);
  std::vector<const void*> sources;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const bool fetched = plan_.fetches() && rank != group_.rank();
    sources.push_back(fetched ? slot(piece) : contribution(rank, piece));
  }
  return group_.runtime().reduce_begin(
      group_.device(),
      {.dst = ends_.results[0] + part.result_bytes,
       .sources = sources,
       .count = part.length_bytes / device::element_bytes(element_),
       .op = op_,
       .element = element_,
       .home = group_.slot(group_.rank(), 0)},
      steps_[kReduce].ticket);
}

// Where there are several results the first one is this rank's own.
Status SpreadReduction::begin_store(std::size_t piece) {
  const node::Share part = plan_.part(piece);
  std::vector<device::Copy> copies;
  for (std::size_t other = 1; other < ends_.results.size(); ++other) {
    copies.push_back({.dst = ends_.results[other] + part.result_bytes,
                      .src = ends_.results[0] + part.result_bytes,
                      .row_bytes = part.length_bytes});
  }
  return group_.runtime().copy_begin(group_.device(), copies, steps_[kStore].ticket);
}

Status SpreadReduction::poll(Progress& progress) {
  bool ended = progress.ticket.handle == nullptr;
  if (!ended) ACCORD_TRY(group_.runtime().copy_done(progress.ticket, ended));
  if (!ended) return {};
  progress.is_under_way = false;
  ++progress.ended;
  return {};
}

const std::byte* SpreadReduction::contribution(int rank, std::size_t piece) const {
  return ends_.contributions[static_cast<std::size_t>(rank)] + plan_.part(piece).source_bytes;
}

std::byte* SpreadReduction::slot(std::size_t piece) const {
  // As far off a vector as the own contribution is, so that the kernel can take vectors of all.
  constexpr std::uintptr_t kVectorBytes = 16;
  const std::uintptr_t off =
      reinterpret_cast<std::uintptr_t>(contribution(group_.rank(), 0)) % kVectorBytes;
  return group_.slot(group_.rank(), 0) + plan_.slot_bytes(piece) + off;
}

}  // namespace accord::coll
