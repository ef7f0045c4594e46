// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/intra/node_exchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "device/reduce_on_host.h"

namespace accord::coll {
namespace {

std::atomic<std::uint64_t> region_calls_done{0};
std::atomic<std::uint64_t> host_region_calls_done{0};

// On host regions: blocks up to here, on the average, the CPU puts together, since an engine takes
// 13 us for each copy, however short (H100, 4 processes in turns).
constexpr std::size_t kPutTogetherBytes = std::size_t{32} << 10;

}  // namespace

void NodeExchange::report() {
  log::info("node: {} collectives through regions, {} of them in host memory",
            region_calls_done.load(std::memory_order_relaxed) +
                host_region_calls_done.load(std::memory_order_relaxed),
            host_region_calls_done.load(std::memory_order_relaxed));
}

NodeExchange::NodeExchange(std::shared_ptr<node::Group> group, node::Regions regions,
                           const CollArgs& args)
    : group_(std::move(group)),
      regions_(regions),
      args_(args),
      plan_(*args.exchange, regions.slot_bytes,
            regions.on_host ? node::Plan::Lanes::dense : node::Plan::Lanes::at_lines),
      own_direct_(plan_.has_own_block() && usable_by_kernels(args.in) &&
                  usable_by_kernels(args.out)),
      result_direct_(plan_.reduces() && plan_.result_is_own() && usable_by_kernels(args.out)) {
  if (args.ways.direct && !regions.on_host) {
    direct_.emplace(group_, args);
  } else {
    enter_regions();
  }
}

void NodeExchange::enter_regions() {
  base_ = group_->take(plan_.chunks());
  flights_.resize(std::min(node::Group::kSlots, plan_.chunks()));
}

bool NodeExchange::usable_by_kernels(const core::CallEnd& end) const {
  return !regions_.on_host && end.usable_by(group_->runtime(), group_->device());
}

Status NodeExchange::advance(bool& done) {
  ACCORD_TRY(group_->check_self());
  if (direct_) {
    auto outcome = DirectExchange::Outcome::pending;
    ACCORD_TRY(direct_->advance(outcome));
    done = outcome == DirectExchange::Outcome::done;
    if (stages::listening) stages::enter(direct_->stage());
    if (outcome != DirectExchange::Outcome::declined)
      return done ? group_->check_buffers() : group_->check_peers();
    direct_.reset();
    enter_regions();
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (Flight& flight : flights_) ACCORD_TRY(move(flight, moved));
  }
  if (stages::listening) stages::enter(stage());
  done = finished_ == plan_.chunks();
  if (done)
    (regions_.on_host ? host_region_calls_done : region_calls_done)
        .fetch_add(1, std::memory_order_relaxed);
  return done ? Status() : group_->check_peers();
}

void NodeExchange::stop(bool& done) {
  group_->give_up();
  done = true;
  if (direct_) direct_->stop(done);
  for (Flight& flight : flights_) {
    bool finished = true;
    if (!poll(flight, finished).ok()) finished = true;
    done = done && finished;
  }
}

Status NodeExchange::move(Flight& flight, bool& moved) {
  const State before = flight.state;
  node::Mailbox& own = group_->own_mailbox();
  bool ready = false;
  switch (flight.state) {
    case State::empty:
      if (next_ == plan_.chunks() || !slot_is_free(base_ + next_)) break;
      flight.chunk = next_++;
      ACCORD_TRY(begin_fill(flight));
      flight.state = State::filling;
      break;
    case State::filling:
      ACCORD_TRY(poll(flight, ready));
      if (ready && publish(own.filled, sequence(flight))) flight.state = State::filled;
      break;
    case State::filled:
      ready = !plan_.reduces();
      if (!ready) ACCORD_TRY(begin_reduce(flight, ready));
      if (ready) flight.state = State::reducing;
      break;
    case State::reducing:
      ACCORD_TRY(poll(flight, ready));
      if (ready && publish(own.reduced, sequence(flight))) flight.state = State::reduced;
      break;
    case State::reduced:
      ACCORD_TRY(begin_pull(flight, ready));
      if (ready) flight.state = State::pulling;
      break;
    case State::pulling:
      ACCORD_TRY(poll(flight, ready));
      if (ready && publish(own.drained, sequence(flight))) flight.state = State::pulled;
      break;
    case State::pulled:
      ++finished_;
      flight.state = State::empty;
      break;
  }
  moved = moved || flight.state != before;
  return {};
}

// Counters rise one by one, so a chunk that is ready before an earlier one waits for it.
bool NodeExchange::publish(std::atomic<std::uint64_t>& counter, std::uint64_t sequence) const {
  if (counter.load(std::memory_order_relaxed) != sequence) return false;
  counter.store(sequence + 1, std::memory_order_release);
  return true;
}

bool NodeExchange::slot_is_free(std::uint64_t sequence) const {
  if (sequence < node::Group::kSlots) return true;
  for (int peer = 0; peer < group_->size(); ++peer) {
    if (group_->mailbox(peer).drained.load(std::memory_order_acquire) <=
        sequence - node::Group::kSlots)
      return false;
  }
  return true;
}

stages::Stage NodeExchange::stage() const {
  const auto any = [this](State state) {
    return std::ranges::any_of(flights_, [=](const Flight& one) { return one.state == state; });
  };
  if (any(State::filling) || any(State::pulling)) return stages::Stage::move;
  return any(State::reducing) ? stages::Stage::reduce : stages::Stage::wait;
}

Status NodeExchange::begin_fill(Flight& flight) {
  stages::enter(stages::Stage::move);
  auto moves = plan_.fills(group_->rank(), args_.in_place, flight.chunk);
  flight.own_skipped = own_direct_;
  flight.result_there = false;
  if (own_direct_) {
    const std::size_t own_bytes = plan_.own_block_bytes(group_->rank(), flight.chunk);
    std::erase_if(moves, [&](const node::Move& move) { return move.own_bytes == own_bytes; });
  }
  core::CopyBatch batch;
  add_copies(args_.in, moves, sequence(flight), true, batch);
  return begin(args_.in, batch, flight.ticket);
}

Status NodeExchange::begin_reduce(Flight& flight, bool& begun) {
  const std::uint64_t number = sequence(flight);
  for (int peer = 0; peer < plan_.sources(group_->rank()); ++peer) {
    if (group_->mailbox(peer).filled.load(std::memory_order_acquire) <= number) return {};
  }
  begun = true;
  stages::enter(stages::Stage::reduce);
  const node::Share share = plan_.share(group_->rank(), flight.chunk);
  if (share.length_bytes == 0) return {};
  if (result_direct_) {
    std::byte* const result = args_.out.address(plan_.first_bytes(flight.chunk));
    const Status direct = reduce(flight, share, result, sources_of(flight, share));
    flight.result_there = direct.ok();
    if (direct.code() != StatusCode::unsupported) return direct;
    result_direct_ =
        false;  // memory that kernels of this context cannot use: through the region after all
  }
  std::byte* const own = regions_.slot(group_->rank(), number);
  if (flight.own_skipped) {
    const device::Copy block{
        .dst = own + share.source_bytes,
        .src = args_.in.address(plan_.own_block_bytes(group_->rank(), flight.chunk)),
        .row_bytes = share.length_bytes};
    ACCORD_TRY(group_->runtime().copy(group_->device(), {&block, 1}));
    flight.own_skipped = own_direct_ = false;
  }
  return reduce(flight, share, own + share.result_bytes, sources_of(flight, share));
}

// In the order of the ranks, so that all get the same bits.
std::vector<const void*> NodeExchange::sources_of(const Flight& flight,
                                                  const node::Share& share) const {
  std::vector<const void*> sources;
  for (int peer = 0; peer < plan_.sources(group_->rank()); ++peer)
    sources.push_back(regions_.slot(peer, sequence(flight)) + share.source_bytes);
  if (flight.own_skipped)
    sources[static_cast<std::size_t>(group_->rank())] =
        args_.in.address(plan_.own_block_bytes(group_->rank(), flight.chunk));
  return sources;
}

Status NodeExchange::reduce(Flight& flight, const node::Share& share, void* dst,
                            const std::vector<const void*>& sources) {
  const node::Call& call = *args_.exchange;
  const device::Reduction reduction{
      .dst = dst,
      .sources = sources,
      .count = share.length_bytes / device::element_bytes(call.element),
      .op = call.op,
      .element = call.element};
  if (!regions_.on_host)
    return group_->runtime().reduce_begin(group_->device(), reduction, flight.ticket);
  ACCORD_TRY(device::check_reduction(reduction));
  device::reduce_on_host(reduction);
  return {};
}

Status NodeExchange::begin_pull(Flight& flight, bool& begun) {
  const std::uint64_t number = sequence(flight);
  auto moves = plan_.pulls(group_->rank(), args_.in_place, flight.chunk);
  if (flight.result_there) moves.clear();
  for (const node::Move& move : moves) {
    const node::Mailbox& peer = group_->mailbox(move.peer);
    const auto& counter = plan_.reduces() ? peer.reduced : peer.filled;
    if (counter.load(std::memory_order_acquire) <= number) return {};
  }
  begun = true;
  stages::enter(stages::Stage::move);
  core::CopyBatch batch;
  if (flight.own_skipped && !plan_.reduces()) {
    const auto own = std::find_if(moves.begin(), moves.end(), [&](const node::Move& move) {
      return move.peer == group_->rank();
    });
    std::byte* const to = args_.out.address(own->own_bytes);
    std::byte* const from = args_.in.address(own->own_bytes);
    if (to != from) batch.plain.append(to, from, own->length_bytes);
    moves.erase(own);
  }
  if (regions_.on_host) put_together(number, moves);
  add_copies(args_.out, moves, number, false, batch);
  return begin(args_.out, batch, flight.ticket);
}

// Many short moves become one, from this rank's own room.
void NodeExchange::put_together(std::uint64_t sequence, std::vector<node::Move>& moves) const {
  std::size_t all_bytes = 0;
  for (const node::Move& move : moves) all_bytes += move.length_bytes;
  const bool is_short =
      all_bytes <= std::min(regions_.slot_bytes, moves.size() * kPutTogetherBytes);
  if (moves.size() < 2 || !is_short) return;
  std::ranges::sort(moves, {}, &node::Move::own_bytes);
  std::vector<node::Move> joined;
  std::byte* room = regions_.own_room(group_->rank(), sequence);
  for (const node::Move& move : moves) {
    std::memcpy(room, regions_.slot(move.peer, sequence) + move.theirs_bytes, move.length_bytes);
    const bool follows =
        !joined.empty() && joined.back().own_bytes + joined.back().length_bytes == move.own_bytes;
    if (follows)
      joined.back().length_bytes += move.length_bytes;
    else
      joined.push_back({group_->rank(),
                        static_cast<std::size_t>(room - regions_.slot(group_->rank(), sequence)),
                        move.own_bytes, move.length_bytes});
    room += move.length_bytes;
  }
  moves = std::move(joined);
}

Status NodeExchange::begin(const core::CallEnd& end, const core::CopyBatch& batch,
                           device::CopyTicket& ticket) {
  ticket = {};
  if (batch.empty()) return {};
  return regions_.on_host ? end.carry(batch, ticket)
                          : group_->runtime().batch_begin(group_->device(), batch, ticket);
}

void NodeExchange::add_copies(const core::CallEnd& end, const std::vector<node::Move>& moves,
                              std::uint64_t sequence, bool to_region,
                              core::CopyBatch& batch) const {
  if (end.segment.count == 0) return;
  for (const node::Move& move : moves) {
    std::byte* there = regions_.slot(move.peer, sequence) + move.theirs_bytes;
    const auto direction =
        to_region ? core::CallEnd::Direction::pack : core::CallEnd::Direction::unpack;
    batch.add(end.copies(direction, move.own_bytes, move.length_bytes, there));
  }
}

Status NodeExchange::poll(Flight& flight, bool& done) {
  done = flight.ticket.handle == nullptr;
  if (done) return {};
  if (!regions_.on_host) return group_->runtime().copy_done(flight.ticket, done);
  const bool is_filling = flight.state == State::filling;
  return (is_filling ? args_.in : args_.out).copied(flight.ticket, done);
}

}  // namespace accord::coll
