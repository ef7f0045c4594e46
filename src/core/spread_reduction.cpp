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
      ends_(std::move(ends)) {}

Status SpreadReduction::advance(bool& done) {
  for (bool moved = true; moved;) {
    moved = false;
    ACCORD_TRY(fetch(moved));
    ACCORD_TRY(reduce(moved));
  }
  done = reducing_.ended == plan_.pieces();
  return {};
}

void SpreadReduction::stop(bool& done) {
  done = true;
  for (Work* work : {&fetching_, &reducing_}) {
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
  return fetching_.begun ? stages::Stage::move : stages::Stage::wait;
}

// One piece at a time: two would share the links, and both be late. Into slots that the kernel is
// through with.
Status SpreadReduction::fetch(bool& moved) {
  bool ended = false;
  ACCORD_TRY(end(fetching_, ended));
  const std::size_t piece = fetching_.ended;
  const bool begins = !fetching_.begun && piece < plan_.pieces() &&
                      piece < reducing_.ended + node::SpreadPlan::kHalves;
  if (begins) ACCORD_TRY(begin_fetch(piece));
  fetching_.begun = fetching_.begun || begins;
  moved = moved || ended || begins;
  return {};
}

Status SpreadReduction::reduce(bool& moved) {
  bool ended = false;
  ACCORD_TRY(end(reducing_, ended));
  const std::size_t piece = reducing_.ended;
  const bool begins = !reducing_.begun && piece < fetching_.ended;
  if (begins) ACCORD_TRY(begin_reduce(piece));
  reducing_.begun = reducing_.begun || begins;
  moved = moved || ended || begins;
  return {};
}

// In one batch, awaited once; not from the same rank as all others at the same time.
Status SpreadReduction::begin_fetch(std::size_t piece) {
  const node::DirectShare part = plan_.part(piece);
  if (part.length_bytes == 0) return {};
  std::vector<device::Copy> copies;
  for (int step = 1; step < group_.size(); ++step) {
    const int peer = (group_.rank() + step) % group_.size();
    copies.push_back(
        {.dst = slot(peer, piece),
         .src = ends_.contributions[static_cast<std::size_t>(peer)] + part.source_bytes,
         .row_bytes = part.length_bytes});
  }
  return group_.runtime().copy_begin(group_.device(), copies, fetching_.ticket);
}

// In the order of the ranks, as on every other way.
Status SpreadReduction::begin_reduce(std::size_t piece) {
  const node::DirectShare part = plan_.part(piece);
  if (part.length_bytes == 0) return {};
  std::vector<const void*> sources;
  for (int rank = 0; rank < group_.size(); ++rank) {
    sources.push_back(rank == group_.rank()
                          ? ends_.contributions[static_cast<std::size_t>(rank)] + part.source_bytes
                          : slot(rank, piece));
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

std::byte* SpreadReduction::slot(int sender, std::size_t piece) const {
  return group_.slot(group_.rank(), 0) + plan_.slot_bytes(sender, piece);
}

}  // namespace accord::core
