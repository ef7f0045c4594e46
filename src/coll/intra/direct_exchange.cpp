// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/intra/direct_exchange.h"

#include <atomic>
#include <utility>

#include "base/log.h"
#include "node/handle_cache.h"

namespace accord::coll {
namespace {

// A runtime may reduce in more than one go beyond this many sources, and then not into one of them.
constexpr int kInPlaceRanksMax = 64;

std::atomic<std::uint64_t> direct_calls{0};
std::atomic<std::uint64_t> spread_calls{0};
std::atomic<std::uint64_t> declined_calls{0};

bool overlap(const core::CallEnd& a, const core::CallEnd& b) {
  if (a.segment.count == 0 || b.segment.count == 0) return false;
  const auto low = [](const core::CallEnd& end) {
    return reinterpret_cast<std::intptr_t>(end.user) + end.segment.low_bytes();
  };
  const auto high = [](const core::CallEnd& end) {
    return reinterpret_cast<std::intptr_t>(end.user) + end.segment.high_bytes();
  };
  return low(a) < high(b) && low(b) < high(a);
}

// In place and in one shot every rank would overwrite what the others still read. In shares it
// writes only what it alone has read.
node::Call call_of(const CollArgs& args) {
  node::Call call = *args.exchange;
  if (call.kind == node::Kind::allreduce && overlap(args.in, args.out)) call.one_shot_bytes = 0;
  return call;
}

}  // namespace

DirectExchange::DirectExchange(std::shared_ptr<node::Group> group, const CollArgs& args)
    : group_(std::move(group)),
      args_(args),
      plan_(call_of(args), group_->rank(), group_->reduces()),
      call_(group_->offers().take_call()) {}

void DirectExchange::report() {
  const Counters calls = counters();
  const node::HandleCache::Counters handles = node::handle_cache().counters();
  log::info(
      "node: {} collectives straight between users' buffers, {} of them spread by engines, {} not "
      "for some buffer; memory of peers: {} opened, {} reused, {} refused, {} closed",
      calls.direct, calls.spread, calls.declined, handles.opens, handles.hits, handles.refusals,
      handles.closes);
}

DirectExchange::Counters DirectExchange::counters() noexcept {
  return {direct_calls.load(std::memory_order_relaxed),
          spread_calls.load(std::memory_order_relaxed),
          declined_calls.load(std::memory_order_relaxed)};
}

Status DirectExchange::advance(Outcome& outcome) {
  for (bool moved = true; moved;) {
    const State before = state_;
    ACCORD_TRY(step());
    moved = state_ != before;
  }
  outcome = state_ == State::done       ? Outcome::done
            : state_ == State::declined ? Outcome::declined
                                        : Outcome::pending;
  return {};
}

void DirectExchange::stop(bool& done) {
  if (spread_) {
    spread_->stop(done);
  } else {
    (void)poll(done);
  }
}

stages::Stage DirectExchange::stage() const noexcept {
  if (state_ != State::working) return stages::Stage::wait;
  if (spread_) return spread_->stage();
  return plan_.reduces() ? stages::Stage::reduce : stages::Stage::move;
}

Status DirectExchange::step() {
  bool ready = false;
  bool direct = true;
  switch (state_) {
    case State::arriving:
      if (!record_is_free()) break;
      arrive();
      state_ = State::gathering;
      break;
    case State::gathering:
      ready = gathered(direct);
      if (ready && direct) {
        ACCORD_TRY(begin());
        state_ = State::working;
      } else if (ready) {
        settle(State::declined);
      }
      break;
    case State::working:
      ACCORD_TRY(spread_ ? spread_->advance(ready) : poll(ready));
      if (ready) settle(State::parting);
      break;
    case State::parting:
      if (peers_are_done()) state_ = State::done;
      break;
    case State::done:
    case State::declined:
      break;
  }
  return {};
}

// What the last call with this place of the ring said has been read by all.
bool DirectExchange::record_is_free() const {
  for (int peer = 0; peer < group_->size(); ++peer) {
    if (board(peer).settled.load(std::memory_order_acquire) + node::Board::kArrivals <= call_)
      return false;
  }
  return true;
}

void DirectExchange::arrive() {
  node::Arrival mine;
  // Both, so that both are on offer as soon as can be.
  const node::Range given = plan_.contribution(args_.in_place);
  const bool in_lent =
      !plan_.needs_in(args_.in_place) || lend(args_.in, plan_.readers_of_in(), given, mine.in);
  const bool out_lent = !plan_.needs_out() || lend(args_.out, plan_.writers_of_out(),
                                                   {0, plan_.result_length_bytes()}, mine.out);
  mine.direct = in_lent && out_lent && reads_survive() ? 1 : 0;
  mine.form = static_cast<std::uint32_t>(plan_.form());
  record(group_->rank()) = mine;
  own_board().arrived.store(call_ + 1, std::memory_order_release);
}

bool DirectExchange::lend(const core::CallEnd& end, int users, node::Range range,
                          node::Place& place) {
  if (!end.usable_by(group_->runtime(), group_->device())) return false;
  return end.offset_in_memory(range.first_bytes, range.length_bytes, place.offset_bytes) &&
         group_->offers().use(end.memory, users, place.offer);
}

// Whether what is read of this rank's send buffer stays until it has been read, although its
// receive buffer is written at the same time.
bool DirectExchange::reads_survive() const {
  if (!overlap(args_.in, args_.out)) return true;
  if (plan_.reduces() && group_->size() > kInPlaceRanksMax) return false;
  const node::Kind kind = args_.exchange->kind;
  if (kind == node::Kind::alltoall) return false;
  if (kind == node::Kind::allgather || kind == node::Kind::allgatherv)
    return args_.in_place;  // its own block, which nobody writes
  if (plan_.readers_of_in() == node::kNobody) return true;
  // A share is written only once the only rank that reads it has reduced it; a block of this rank
  // alone lies where others have theirs.
  const bool in_shares =
      plan_.form() == node::DirectForm::shares || plan_.form() == node::DirectForm::spread;
  return in_shares && plan_.writers_of_out() != node::kNobody &&
         args_.in.address(0) == args_.out.address(0);
}

bool DirectExchange::gathered(bool& direct) const {
  bool all_there = true;
  for (int rank = 0; rank < group_->size(); ++rank) {
    if (!plan_.decides(rank)) continue;
    const bool there = board(rank).arrived.load(std::memory_order_acquire) > call_;
    direct = !there || (record(rank).direct != 0 &&
                        record(rank).form == static_cast<std::uint32_t>(plan_.form()));
    if (!direct) return true;
    all_there = all_there && there;
  }
  return all_there;
}

std::byte* DirectExchange::contribution(int rank) const {
  return rank == group_->rank() ? args_.in.address(plan_.contribution(args_.in_place).first_bytes)
                                : group_->offers().address(rank, record(rank).in);
}

std::byte* DirectExchange::result(int rank) const {
  return rank == group_->rank() ? args_.out.address(0)
                                : group_->offers().address(rank, record(rank).out);
}

Status DirectExchange::begin() {
  if (plan_.form() == node::DirectForm::spread) {
    begin_spread();
    return {};
  }
  return plan_.by_kernel() ? begin_kernel() : begin_copies();
}

// In the order of the ranks, as through the regions. Without an operation there is one source,
// which is copied as it is.
Status DirectExchange::begin_kernel() {
  const node::Share share = plan_.share(group_->rank());
  if (share.length_bytes == 0) return {};
  std::vector<const void*> sources;
  for (const int rank : plan_.sources()) sources.push_back(contribution(rank) + share.source_bytes);
  std::vector<void*> targets;
  for (const int rank : plan_.targets()) targets.push_back(result(rank) + share.result_bytes);
  const node::Call& call = *args_.exchange;
  const bool reduces = plan_.reduces();
  const device::Element element = reduces ? call.element : device::Element::uint8;
  return group_->runtime().reduce_begin(
      group_->device(),
      {.dst = targets[0],
       .sources = sources,
       .count = share.length_bytes / device::element_bytes(element),
       .op = reduces ? call.op : device::ReduceOp::bor,
       .element = element,
       .copies = std::span(targets).subspan(1),
       .home = group_->slot(group_->rank(), 0)},
      tickets_[0]);
}

// What crosses the links in one batch, awaited once; the own block beside it.
Status DirectExchange::begin_copies() {
  core::CopyBatch own;
  core::CopyBatch theirs;
  for (const node::Move& move : plan_.moves(args_.in_place)) {
    core::CopyBatch part;
    if (plan_.form() == node::DirectForm::pushes) {
      part.plain.append(result(move.peer) + move.theirs_bytes,
                        contribution(group_->rank()) + move.own_bytes, move.length_bytes);
    } else {
      part = args_.out.copies(core::CallEnd::Direction::unpack, move.own_bytes, move.length_bytes,
                              contribution(move.peer) + move.theirs_bytes);
    }
    (move.peer == group_->rank() ? own : theirs).add(std::move(part));
  }
  device::DeviceRuntime& runtime = group_->runtime();
  if (!theirs.empty()) ACCORD_TRY(runtime.batch_begin(group_->device(), theirs, tickets_[0]));
  if (!own.empty()) ACCORD_TRY(runtime.batch_begin(group_->device(), own, tickets_[1]));
  return {};
}

void DirectExchange::begin_spread() {
  SpreadReduction::Ends ends;
  for (const int rank : plan_.sources()) ends.contributions.push_back(contribution(rank));
  if (plan_.share(group_->rank()).length_bytes > 0) {
    for (const int rank : plan_.targets()) ends.results.push_back(result(rank));
  }
  spread_.emplace(*group_, *args_.exchange, plan_, std::move(ends));
  spread_calls.fetch_add(1, std::memory_order_relaxed);
}

void DirectExchange::settle(State next) {
  own_board().settled.store(call_ + 1, std::memory_order_release);
  (next == State::declined ? declined_calls : direct_calls).fetch_add(1, std::memory_order_relaxed);
  state_ = next;
}

bool DirectExchange::peers_are_done() const {
  for (int peer = 0; peer < group_->size(); ++peer) {
    const bool touches = plan_.is_touched_by(peer);
    if (touches && board(peer).settled.load(std::memory_order_acquire) <= call_) return false;
  }
  return true;
}

Status DirectExchange::poll(bool& done) {
  done = true;
  Status status;
  for (device::CopyTicket& ticket : tickets_) {
    if (ticket.handle == nullptr) continue;
    bool ended = false;
    Status polled = group_->runtime().copy_done(ticket, ended);
    if (!polled.ok()) ticket = {};
    done = done && (ended || !polled.ok());
    keep_first(status, std::move(polled));
  }
  return status;
}

}  // namespace accord::coll
