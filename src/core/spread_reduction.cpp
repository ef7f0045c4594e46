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
      plan_(plan, group.slot_bytes() * node::Group::kSlots),
      ends_(std::move(ends)),
      base_(group.take(plan_.pieces())) {}

Status SpreadReduction::advance(bool& done) {
  for (bool moved = true; moved;) {
    moved = false;
    ACCORD_TRY(push(moved));
    ACCORD_TRY(reduce(moved));
  }
  done = reducing_.ended == plan_.pieces();
  return {};
}

void SpreadReduction::stop(bool& done) {
  done = true;
  for (Work* work : {&pushing_, &reducing_}) {
    bool ended = false;
    if (!poll(work->ticket, ended).ok()) {
      work->ticket = {};
      ended = true;
    }
    done = done && ended;
  }
}

stages::Stage SpreadReduction::stage() const noexcept {
  if (reducing_.begun) return stages::Stage::reduce;
  return pushing_.begun ? stages::Stage::move : stages::Stage::wait;
}

// One piece at a time: two would share the links, and both be late for those who wait for them.
Status SpreadReduction::push(bool& moved) {
  bool ended = false;
  ACCORD_TRY(end(pushing_, ended));
  if (ended) group_.own_mailbox().filled.store(base_ + pushing_.ended, std::memory_order_release);
  const std::size_t piece = pushing_.ended;
  const bool begins = !pushing_.begun && piece < plan_.pieces() && slots_are_free(piece);
  if (begins) ACCORD_TRY(begin_push(piece));
  pushing_.begun = pushing_.begun || begins;
  moved = moved || ended || begins;
  return {};
}

Status SpreadReduction::reduce(bool& moved) {
  bool ended = false;
  ACCORD_TRY(end(reducing_, ended));
  if (ended) {
    node::Mailbox& own = group_.own_mailbox();
    own.reduced.store(base_ + reducing_.ended, std::memory_order_release);
    own.drained.store(base_ + reducing_.ended, std::memory_order_release);
  }
  const std::size_t piece = reducing_.ended;
  const bool begins = !reducing_.begun && piece < plan_.pieces() && is_there(piece);
  if (begins) ACCORD_TRY(begin_reduce(piece));
  reducing_.begun = reducing_.begun || begins;
  moved = moved || ended || begins;
  return {};
}

// In one batch, awaited once.
Status SpreadReduction::begin_push(std::size_t piece) {
  const int rank = group_.rank();
  std::vector<device::Copy> copies;
  for (const int peer : plan_.receivers(rank, piece)) {
    const node::DirectShare part = plan_.part(peer, piece);
    copies.push_back({.dst = slot(rank, peer, piece),
                      .src = ends_.contribution + part.source_bytes,
                      .row_bytes = part.length_bytes});
  }
  if (copies.empty()) return {};
  return group_.runtime().copy_begin(group_.device(), copies, pushing_.ticket);
}

// In the order of the ranks, as on every other way.
Status SpreadReduction::begin_reduce(std::size_t piece) {
  const int rank = group_.rank();
  const node::DirectShare part = plan_.part(rank, piece);
  if (part.length_bytes == 0) return {};
  std::vector<const void*> sources;
  for (int sender = 0; sender < group_.size(); ++sender) {
    sources.push_back(sender == rank ? ends_.contribution + part.source_bytes
                                     : slot(sender, rank, piece));
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
       .home = group_.slot(rank, 0)},
      reducing_.ticket);
}

Status SpreadReduction::end(Work& work, bool& ended) {
  if (!work.begun) return {};
  ACCORD_TRY(poll(work.ticket, ended));
  if (!ended) return {};
  work.begun = false;
  ++work.ended;
  return {};
}

Status SpreadReduction::poll(device::CopyTicket& ticket, bool& done) {
  done = ticket.handle == nullptr;
  return done ? Status() : group_.runtime().copy_done(ticket, done);
}

// Once the kernels have read what lay there before.
bool SpreadReduction::slots_are_free(std::size_t piece) const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const auto drained = group_.mailbox(peer).drained.load(std::memory_order_acquire);
    if (drained + node::SpreadPlan::kHalves <= base_ + piece) return false;
  }
  return true;
}

// Also what this rank sends: in place, its results overwrite it.
bool SpreadReduction::is_there(std::size_t piece) const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const auto filled = group_.mailbox(peer).filled.load(std::memory_order_acquire);
    if (filled <= base_ + piece) return false;
  }
  return true;
}

std::byte* SpreadReduction::slot(int sender, int receiver, std::size_t piece) const {
  return group_.slot(receiver, 0) + plan_.slot_bytes(sender, receiver, piece);
}

}  // namespace accord::core
