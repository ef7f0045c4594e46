// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/spread_reduction.h"

#include <span>
#include <utility>

namespace accord::core {

SpreadReduction::SpreadReduction(node::Group& group, const node::Call& call,
                                 const node::DirectPlan& plan, Ends ends)
    : group_(group),
      op_(call.op),
      element_(call.element),
      plan_(plan, group.rank(), group.slot_bytes() * node::Group::kSlots),
      ends_(std::move(ends)),
      base_(group.take(plan_.pieces())) {}

Status SpreadReduction::advance(bool& done) {
  for (bool moved = true; moved && piece_ < plan_.pieces();) {
    const State before = state_;
    ACCORD_TRY(step());
    moved = state_ != before;
  }
  done = piece_ == plan_.pieces();
  return {};
}

Status SpreadReduction::step() {
  node::Mailbox& own = group_.own_mailbox();
  bool ended = false;
  switch (state_) {
    case State::before:
      if (!all_have(&node::Mailbox::drained, piece_)) break;
      ACCORD_TRY(begin_fetch());
      state_ = State::fetching;
      break;
    case State::fetching:
      ACCORD_TRY(poll(ended));
      if (!ended) break;
      own.filled.store(base_ + piece_ + 1, std::memory_order_release);
      state_ = State::between;
      break;
    case State::between:
      if (!all_have(&node::Mailbox::filled, piece_ + 1)) break;
      ACCORD_TRY(begin_reduce());
      state_ = State::reducing;
      break;
    case State::reducing:
      ACCORD_TRY(poll(ended));
      if (!ended) break;
      ++piece_;
      own.reduced.store(base_ + piece_, std::memory_order_release);
      own.drained.store(base_ + piece_, std::memory_order_release);
      state_ = State::before;
      break;
  }
  return {};
}

void SpreadReduction::stop(bool& done) {
  if (poll(done).ok()) return;
  ticket_ = {};
  done = true;
}

stages::Stage SpreadReduction::stage() const noexcept {
  if (state_ == State::fetching) return stages::Stage::move;
  return state_ == State::reducing ? stages::Stage::reduce : stages::Stage::wait;
}

// In one batch, awaited once; not from the same rank as all others at the same time.
Status SpreadReduction::begin_fetch() {
  const node::DirectShare part = plan_.part(piece_);
  if (part.length_bytes == 0) return {};
  std::vector<device::Copy> copies;
  for (int step = 1; step < group_.size(); ++step) {
    const int peer = (group_.rank() + step) % group_.size();
    copies.push_back(
        {.dst = slot(peer),
         .src = ends_.contributions[static_cast<std::size_t>(peer)] + part.source_bytes,
         .row_bytes = part.length_bytes});
  }
  return group_.runtime().copy_begin(group_.device(), copies, ticket_);
}

// In the order of the ranks, as on every other way.
Status SpreadReduction::begin_reduce() {
  const node::DirectShare part = plan_.part(piece_);
  if (part.length_bytes == 0) return {};
  std::vector<const void*> sources;
  for (int rank = 0; rank < group_.size(); ++rank) {
    sources.push_back(rank == group_.rank()
                          ? ends_.contributions[static_cast<std::size_t>(rank)] + part.source_bytes
                          : slot(rank));
  }
  std::vector<void*> targets;
  for (std::byte* const result : ends_.results) targets.push_back(result + part.result_bytes);
  return group_.runtime().reduce_begin(
      group_.device(),
      {.dst = targets[0],
       .sources = sources,
       .count = part.length_bytes / device::element_bytes(element_),
       .op = op_,
       .element = element_,
       .copies = std::span(targets).subspan(1),
       .home = group_.slot(group_.rank(), 0)},
      ticket_);
}

Status SpreadReduction::poll(bool& done) {
  done = ticket_.handle == nullptr;
  return done ? Status() : group_.runtime().copy_done(ticket_, done);
}

bool SpreadReduction::all_have(std::atomic<std::uint64_t> node::Mailbox::*counter,
                               std::size_t pieces) const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    if ((group_.mailbox(peer).*counter).load(std::memory_order_acquire) < base_ + pieces)
      return false;
  }
  return true;
}

std::byte* SpreadReduction::slot(int sender) const {
  // As far off a vector as the own contribution is, so that the kernel can take vectors of all.
  constexpr std::uintptr_t kVectorBytes = 16;
  const std::byte* const own = ends_.contributions[static_cast<std::size_t>(group_.rank())];
  const std::uintptr_t off =
      reinterpret_cast<std::uintptr_t>(own + plan_.part(0).source_bytes) % kVectorBytes;
  return group_.slot(group_.rank(), 0) + plan_.slot_bytes(sender) + off;
}

}  // namespace accord::core
