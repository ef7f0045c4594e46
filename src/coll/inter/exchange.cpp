// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/exchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "coll/inter/parcel_copy.h"
#include "coll/inter/transports.h"
#include "coll/intra/node_exchange.h"
#include "coll/tags.h"

namespace accord::coll {
namespace {

// Chunks that have memory at a time: two between the nodes, one that goes up, one that goes down.
constexpr std::size_t kFlights = 4;
// Chunks that go up before the first comes down. Regions serve what goes through them in one order,
// which has to be the same on all ranks of a node: up, up, up, then down and up in turns.
constexpr std::size_t kChunksAhead = 3;
std::atomic<std::uint64_t> calls_done{0};

core::CallEnd with_parts(core::CallEnd end, const TwoLevelPlan::Parts& parts) {
  end.parts = parts;
  if (parts.empty()) end.segment.count = 0;
  return end;
}

// By a transport each makes a journey there and back.
std::size_t parcel_bytes(const CollArgs& args, const NetWay& between) {
  constexpr std::size_t kOffered = std::size_t{4} << 20;
  const bool is_left_to_us = args.parcel_bytes == core::Placement::kParcelBytesAuto;
  return is_left_to_us && between.way == NetWay::Way::design ? kOffered : args.parcel_bytes;
}

// And is cut into pieces, which overlap: with one alone nothing does.
std::size_t message_bytes_min(const NetWay& between) {
  constexpr std::size_t kOffered = std::size_t{1} << 20;
  return between.way == NetWay::Way::design ? kOffered : 0;
}

}  // namespace

TwoLevelExchange::TwoLevelExchange(core::Team& team, const CollArgs& args)
    : group_(team.nodes.local.group),
      wire_(team.nodes.wire),
      between_(between_nodes(args, team.regions.placement)),
      transport_(make_transport(between_, args, *wire_)),
      args_(args),
      plan_(*args.exchange, team.regions.placement, args.rank, args.in_place, args.ways.leaders_max,
            parcel_bytes(args, between_), message_bytes_min(between_)),
      spare_(team.nodes.parcels),
      base_(team.nodes.chunks),
      lane_(team.nodes.lane),
      flights_(std::min(kFlights, plan_.chunks())) {
  team.nodes.chunks += plan_.chunks();
  if (args_.in_place || ParcelCopy::may_keep(args_.in, args_.out)) plan_.keep_own();
}

Status TwoLevelExchange::advance(bool& done) {
  ACCORD_TRY(group_->check_self());
  for (bool moved = true; moved;) {
    moved = false;
    ACCORD_TRY(begin_steps(moved));
    for (Flight& flight : flights_) ACCORD_TRY(move(flight, moved));
  }
  if (stages::listening) stages::enter(stage());
  done = finished_ == plan_.chunks();
  if (done) calls_done.fetch_add(1, std::memory_order_relaxed);
  return done ? Status() : group_->check_peers();
}

const char* TwoLevelExchange::path() const noexcept { return path_of(false, between_); }

void TwoLevelExchange::report() {
  log::info("nodes: {} collectives in two levels", calls_done.load(std::memory_order_relaxed));
}

// The ranks of this node see that this one has failed. Those of other nodes get the messages that
// they still wait for, but empty ones, and theirs are received, so that nobody waits for ever: who
// gets an empty one stops, too.
void TwoLevelExchange::stop(bool& done) {
  stopping_ = true;
  group_->give_up();
  done = true;
  for (Flight& flight : flights_) {
    bool ended = true;
    if (flight.exchange) flight.exchange->stop(ended);
    if (ended) flight.exchange.reset();
    const bool drained = drain(flight);
    done = done && ended && drained;
  }
}

// Goes on with the rounds alone, to the last one.
bool TwoLevelExchange::drain(Flight& flight) {
  for (;;) {
    if (flight.state == State::between) begin_what_can(flight);
    bool complete = false;
    // A short message is one of a rank that stops, too.
    (void)poll_messages(flight, complete);
    if (!complete || !has_reduced(flight)) return false;
    if (flight.state == State::up) {
      flight.state = State::between;
    } else if (flight.state == State::between && flight.round < flight.chunk.rounds.size()) {
      next_round(flight);
    } else if (flight.exchange || next_up_ == plan_.chunks()) {
      return true;
    } else if (!begin_drain(flight)) {
      return false;
    }
  }
}

// What a peer waits for is tried twice: an empty message may go where another could not.
void TwoLevelExchange::begin_what_can(Flight& flight) {
  constexpr std::size_t kNone = SIZE_MAX;
  for (std::size_t refused = kNone; !begin_round(flight).ok();) {
    const bool again = flight.begun == refused;
    refused = again ? kNone : flight.begun;
    if (again) ++flight.begun;
  }
}

// Takes the next chunk, whose messages `flight` then stands for, where there is memory for them.
// That need be no memory of a device, which may be what has failed.
bool TwoLevelExchange::begin_drain(Flight& flight) {
  TwoLevelPlan::Chunk chunk = plan_.chunk(next_up_);
  if (!flight.parcel.take_sparse(chunk.parcel_bytes)) return false;
  flight.number = next_up_++;
  flight.chunk = std::move(chunk);
  flight.round = 0;
  flight.begun = 0;
  flight.state = State::up;
  return true;
}

bool TwoLevelExchange::down_is_next() const noexcept {
  return next_up_ == plan_.chunks() || next_up_ - next_down_ == kChunksAhead;
}

// What takes place within the node begins in the order that is the same on all its ranks.
Status TwoLevelExchange::begin_steps(bool& moved) {
  while (next_down_ < plan_.chunks()) {
    const bool down = down_is_next();
    Flight& flight = flight_of(down ? next_down_ : next_up_);
    if (flight.state != (down ? State::ready : State::empty)) return {};
    moved = true;
    if (down) {
      ACCORD_TRY(begin_down(flight));
      ++next_down_;
    } else {
      flight.number = next_up_;
      ACCORD_TRY(begin_up(flight));
      ++next_up_;
    }
  }
  return {};
}

Status TwoLevelExchange::begin_up(Flight& flight) {
  flight.chunk = plan_.chunk(flight.number);
  flight.round = 0;
  flight.begun = 0;
  ACCORD_TRY(flight.parcel.take(*group_, flight.chunk.parcel_bytes, transport_.get(), spare_));
  // What the root gathers in place lies where it ends.
  const bool gathered_in_place = args_.in_place && args_.exchange->kind == node::Kind::gather;
  begin_local(flight, flight.chunk.up, gathered_in_place ? args_.out : args_.in,
              flight.parcel.end(flight.chunk.parcel_bytes), core::CallEnd::Direction::pack);
  if (flight.chunk.own.length_bytes != 0) begin_own(flight);
  flight.state = State::up;
  return {};
}

// With what goes up, if anything does.
void TwoLevelExchange::begin_own(Flight& flight) {
  if (!flight.exchange) {
    flight.local = CollArgs();
    flight.exchange = std::make_unique<ParcelCopy>(flight.local.in, flight.local.out,
                                                   core::CallEnd::Direction::pack);
  }
  static_cast<ParcelCopy&>(*flight.exchange).keep(args_.in, args_.out, flight.chunk.own);
}

Status TwoLevelExchange::begin_down(Flight& flight) {
  begin_local(flight, flight.chunk.down, flight.parcel.end(flight.chunk.parcel_bytes), args_.out,
              core::CallEnd::Direction::unpack);
  flight.state = State::down;
  return {};
}

// Reductions give each rank its block, all else shows each rank what the others have.
void TwoLevelExchange::begin_local(Flight& flight, const TwoLevelPlan::Local& local,
                                   core::CallEnd in, core::CallEnd out,
                                   core::CallEnd::Direction direction) {
  if (local.blocks_bytes.empty()) return;
  flight.local = CollArgs();
  flight.local.in = with_parts(std::move(in), local.in);
  flight.local.out = with_parts(std::move(out), local.out);
  if (group_->size() == 1) {
    const bool packs = direction == core::CallEnd::Direction::pack;
    const core::CallEnd& user = packs ? flight.local.in : flight.local.out;
    const core::CallEnd& parcel = packs ? flight.local.out : flight.local.in;
    flight.exchange = std::make_unique<ParcelCopy>(user, parcel, direction);
    return;
  }
  node::Call call{.kind = local.reduces ? node::Kind::reduce_scatter : node::Kind::allgatherv,
                  .size = group_->size(),
                  .block_bytes = *std::ranges::max_element(local.blocks_bytes),
                  .blocks_bytes = local.blocks_bytes,
                  .engine_bytes = args_.exchange->engine_bytes};
  if (local.reduces) {
    call.op = args_.exchange->op;
    call.element = args_.exchange->element;
  }
  flight.local.exchange = std::move(call);
  flight.local.rank = group_->rank();
  flight.exchange = std::make_unique<NodeExchange>(group_, flight.local);
}

Status TwoLevelExchange::move(Flight& flight, bool& moved) {
  const State before = flight.state;
  bool done = false;
  if (flight.state == State::up) {
    ACCORD_TRY(advance_local(flight, done));
    if (done) flight.state = State::between;
    if (done) ACCORD_TRY(begin_round(flight));
  }
  while (flight.state == State::between) {
    ACCORD_TRY(poll_messages(flight, done));
    if (!done) break;
    if (flight.round == flight.chunk.rounds.size()) {
      flight.state = State::ready;
    } else {
      ACCORD_TRY(reduce(flight, done));
      if (!done) break;
      next_round(flight);
      ACCORD_TRY(begin_round(flight));
    }
  }
  if (flight.state == State::down) {
    ACCORD_TRY(advance_local(flight, done));
    if (done) {
      flight.parcel.give_back(spare_);
      flight.state = State::empty;
      ++finished_;
    }
  }
  moved = moved || flight.state != before;
  return {};
}

Status TwoLevelExchange::advance_local(Flight& flight, bool& done) {
  done = true;
  if (flight.exchange) ACCORD_TRY(flight.exchange->advance(done));
  if (done) flight.exchange.reset();
  return {};
}

// Receives first, so that what arrives at once finds its place. After an error the next call goes
// on with the message that had it.
Status TwoLevelExchange::begin_round(Flight& flight) {
  if (flight.round == flight.chunk.rounds.size()) return {};
  // The rounds of a chunk have one, and are matched in their order.
  const int tag = tag_of(lane_, base_ + flight.number);
  const std::vector<TwoLevelPlan::Message>& messages = flight.chunk.rounds[flight.round].messages;
  for (; flight.begun < 2 * messages.size(); ++flight.begun) {
    const bool sends = flight.begun >= messages.size();
    const TwoLevelPlan::Message& one = messages[flight.begun % messages.size()];
    if (one.sends == sends) ACCORD_TRY(begin_message(flight, one, tag));
  }
  return {};
}

void TwoLevelExchange::next_round(Flight& flight) {
  ++flight.round;
  flight.begun = 0;
  flight.reduced = 0;
}

stages::Stage TwoLevelExchange::stage() const {
  const auto any = [this](State state) {
    return std::ranges::any_of(flights_, [=](const Flight& one) { return one.state == state; });
  };
  if (any(State::between)) return stages::Stage::host_mpi;
  return any(State::up) || any(State::down) ? stages::Stage::move : stages::Stage::wait;
}

}  // namespace accord::coll
