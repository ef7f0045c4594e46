// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/pairwise_exchange.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"

namespace accord::coll {
namespace {

std::atomic<std::uint64_t> lent_pairs{0};
std::atomic<std::uint64_t> region_pairs{0};

}  // namespace

PairwiseExchange::PairwiseExchange(std::shared_ptr<node::Group> group, const CollArgs& args,
                                   std::size_t from_bytes)
    : group_(std::move(group)),
      args_(args),
      from_bytes_(from_bytes),
      call_(group_->offers().take_call()),
      base_(group_->take(node::Group::kSlots)) {}

PairwiseExchange::Counters PairwiseExchange::counters() noexcept {
  return {lent_pairs.load(std::memory_order_relaxed), region_pairs.load(std::memory_order_relaxed)};
}

void PairwiseExchange::report() {
  const Counters pairs = counters();
  log::info("node: of what this rank sent pair by pair, {} messages straight and {} by region",
            pairs.lent, pairs.through_region);
}

Status PairwiseExchange::advance(bool& done) {
  done = false;  // whatever goes wrong before the end is to be stopped
  ACCORD_TRY(group_->check_self());
  if (!began_) choose_ways();
  for (bool moved = true; moved;) {
    moved = false;
    announce();
    look();
    ACCORD_TRY(fetch_lent());
    ACCORD_TRY(move(filling_, outgoing_, Direction::pack, moved));
    ACCORD_TRY(move(pulling_, incoming_, Direction::unpack, moved));
  }
  bool received = settled_;
  if (!settled_) ACCORD_TRY(has_received(received));
  if (!settled_ && received && arrived_) settle();
  if (stages::listening) stages::enter(stage());
  ended_ = settled_ && has_sent();
  done = ended_;
  if (!done) return group_->check_peers();
  if (std::ranges::any_of(incoming_, &Pair::is_lent)) keep_first(mistake_, group_->check_buffers());
  return mistake_;
}

// After a mistake of the program alone nothing is left to stop, and the group is as good as before.
void PairwiseExchange::stop(bool& done) {
  done = true;
  if (ended_) return;
  group_->give_up();
  const auto end = [&](device::CopyTicket& ticket) {
    bool ended = true;
    done = (!poll(ticket, ended).ok() || ended) && done;
  };
  end(filling_.ticket);
  end(pulling_.ticket);
  std::ranges::for_each(fetches_, end);
}

stages::Stage PairwiseExchange::stage() const noexcept {
  const auto is_open = [](const device::CopyTicket& one) { return one.handle != nullptr; };
  const bool moves = is_open(filling_.ticket) || is_open(pulling_.ticket) ||
                     std::ranges::any_of(fetches_, is_open);
  return moves ? stages::Stage::move : stages::Stage::wait;
}

std::vector<PairwiseExchange::Pair> PairwiseExchange::pairs_of(const core::CallEnd& end) const {
  std::vector<Pair> pairs(static_cast<std::size_t>(group_->size()));
  for (std::size_t peer = 0; peer < pairs.size(); ++peer) {
    pairs[peer].peer = static_cast<int>(peer);
    coll::Pair found = pair_of(end, static_cast<int>(peer));
    if (found.size_bytes >= from_bytes_) static_cast<coll::Pair&>(pairs[peer]) = std::move(found);
  }
  return pairs;
}

// Not before the first step: only then the ends are where the bytes are.
void PairwiseExchange::choose_ways() {
  began_ = true;
  outgoing_ = pairs_of(args_.in);
  incoming_ = pairs_of(args_.out);
  std::vector<Pair*> through_region;
  core::CallEnd end = without_blocks(args_.in);
  for (Pair& pair : outgoing_) {
    if (pair.size_bytes == 0) continue;
    pair.is_lent = lend(pair, end);
    if (!pair.is_lent) through_region.push_back(&pair);
    if (pair.peer != rank())
      (pair.is_lent ? lent_pairs : region_pairs).fetch_add(1, std::memory_order_relaxed);
  }
  const node::Lanes lanes(group_->slot_bytes() * node::Group::kSlots, through_region.size());
  for (std::size_t lane = 0; lane < through_region.size(); ++lane) {
    Pair& pair = *through_region[lane];
    pair.lane_bytes = lanes.first_bytes(lane);
    pair.lane = group_->slot(rank(), 0) + pair.lane_bytes;
    pair.chunk_bytes = lanes.chunk_bytes(pair.size_bytes);
  }
}

// In place, what a peer had yet to fetch would be overwritten by what it sends.
bool PairwiseExchange::lend(Pair& pair, core::CallEnd& end) const {
  end.segment = pair.block;
  if (args_.in_place || !pair.is_one_block() || !end.lies_on(group_->runtime(), group_->device()) ||
      (!end.contiguous() && !core::find_steps(pair.block, pair.runs)))
    return false;
  if (pair.peer == rank()) return true;
  const bool long_enough = args_.ways.lend_bytes != 0 && pair.size_bytes >= args_.ways.lend_bytes;
  return long_enough && end.span_in_memory(pair.place.offset_bytes) &&
         group_->offers().use(end.memory, pair.peer, pair.place.offer);
}

// A parcel may be written anew once its receiver reads none of earlier calls.
void PairwiseExchange::announce() {
  if (arrived_) return;
  for (Pair& pair : outgoing_) {
    if (pair.size_bytes == 0 || pair.announced) continue;
    if (board(pair.peer).settled.load(std::memory_order_acquire) < call_) continue;
    node::Parcel& parcel = group_->parcel(rank(), pair.peer);
    parcel.size_bytes = pair.size_bytes;
    parcel.sizes_hash = pair.sizes_hash;
    parcel.is_lent = pair.is_lent ? 1 : 0;
    parcel.lent = pair.place;
    parcel.lent_runs = pair.runs;
    parcel.lane_bytes = pair.lane_bytes;
    parcel.chunk_bytes = pair.chunk_bytes;
    parcel.filled.store(0, std::memory_order_relaxed);
    parcel.taken.store(0, std::memory_order_relaxed);
    parcel.call.store(call_ + 1, std::memory_order_release);
    pair.announced = true;
  }
  arrived_ = all_announced(outgoing_);
  if (arrived_) board(rank()).arrived.store(call_ + 1, std::memory_order_release);
}

// A peer that has arrived without a parcel for this rank sends it nothing.
void PairwiseExchange::look() {
  for (Pair& pair : incoming_) {
    if (pair.size_bytes == 0 || pair.announced) continue;
    const bool arrived = board(pair.peer).arrived.load(std::memory_order_acquire) > call_;
    const node::Parcel& parcel = group_->parcel(pair.peer, rank());
    if (parcel.call.load(std::memory_order_acquire) == call_ + 1) {
      read(pair, parcel);
    } else if (arrived) {
      refuse(pair, sends_other(pair.peer, 0, pair.size_bytes));
    }
  }
}

void PairwiseExchange::read(Pair& pair, const node::Parcel& parcel) {
  if (parcel.size_bytes != pair.size_bytes)
    return refuse(pair, sends_other(pair.peer, parcel.size_bytes, pair.size_bytes));
  if (parcel.sizes_hash != pair.sizes_hash) return refuse(pair, sends_other_blocks(pair.peer));
  pair.announced = true;
  pair.is_lent = parcel.is_lent != 0;
  pair.place = parcel.lent;
  pair.runs = parcel.lent_runs;
  pair.lane = group_->slot(pair.peer, 0) + parcel.lane_bytes;
  pair.chunk_bytes = parcel.chunk_bytes;
}

void PairwiseExchange::refuse(Pair& pair, Status why) {
  keep_first(mistake_, std::move(why));
  pair.give_up();
}

// All in one batch, since each takes a launch and a wait, but for long ones, which begin while
// others have yet to come. The own block goes behind the first of them: an engine that copies it
// brings nobody else's meanwhile (two H200, 256 MiB each: 0.1 ms of 0.8).
Status PairwiseExchange::fetch_lent() {
  constexpr std::size_t kLongBytes = std::size_t{1} << 20;
  core::CopyBatch own;
  core::CopyBatch theirs;
  std::size_t ready_bytes = 0;
  const auto is_ready = [&](const Pair& pair) {
    return pair.size_bytes != 0 && pair.announced && pair.is_lent && pair.begun == 0;
  };
  for (const Pair& pair : incoming_)
    if (pair.peer != rank() && is_ready(pair)) ready_bytes += pair.size_bytes;
  const bool goes = ready_bytes >= kLongBytes || all_announced(incoming_);
  for (std::size_t step = 0; step < incoming_.size(); ++step) {
    Pair& pair = turn(incoming_, step);
    const bool is_own = pair.peer == rank();
    if (!goes || !is_ready(pair)) continue;
    std::byte* const from = is_own ? core::at(args_.in.user, turn(outgoing_, 0).block.low_bytes())
                                   : group_->offers().address(pair.peer, pair.place);
    core::CopyBatch one;
    add_copies_from(from, pair.runs, args_.out, pair, one);
    (is_own ? own : theirs).add(std::move(one));
    pair.begun = 1;
  }
  ACCORD_TRY(fetch(theirs));
  return fetch(own);
}

Status PairwiseExchange::fetch(const core::CopyBatch& batch) {
  return batch.empty()
             ? Status()
             : group_->runtime().batch_begin(group_->device(), batch, fetches_.emplace_back());
}

// Once a batch is through, the next one: a chunk of each pair that has one.
Status PairwiseExchange::move(Batch& batch, std::vector<Pair>& pairs, Direction direction,
                              bool& moved) {
  const bool fills = direction == Direction::pack;
  if (!batch.pairs.empty()) {
    bool done = false;
    ACCORD_TRY(poll(batch.ticket, done));
    if (!done) return {};
    for (Pair* pair : batch.pairs) {
      auto& count = fills ? group_->parcel(rank(), pair->peer).filled
                          : group_->parcel(pair->peer, rank()).taken;
      count.store(++pair->moved, std::memory_order_release);
    }
    batch.pairs.clear();
  }
  core::CopyBatch copies;
  for (std::size_t step = 0; step < pairs.size(); ++step) {
    Pair& pair = turn(pairs, step);
    if (!pair.announced || pair.is_lent || pair.begun == pair.chunks()) continue;
    if (fills ? !may_fill(pair) : !may_pull(pair)) continue;
    add_chunk(pair, direction, copies);
    ++pair.begun;
    batch.pairs.push_back(&pair);
  }
  moved = moved || !batch.pairs.empty();
  return copies.empty() ? Status()
                        : group_->runtime().batch_begin(group_->device(), copies, batch.ticket);
}

bool PairwiseExchange::may_fill(Pair& pair) {
  if (has_settled(pair.peer)) {
    learn_refused(pair);
    return false;
  }
  const auto& taken = group_->parcel(rank(), pair.peer).taken;
  return region_is_free() &&
         pair.begun < taken.load(std::memory_order_acquire) + node::Lanes::kSlots;
}

// In place, not what this rank has yet to send.
bool PairwiseExchange::may_pull(const Pair& pair) const {
  if (group_->parcel(pair.peer, rank()).filled.load(std::memory_order_acquire) <= pair.begun)
    return false;
  if (!args_.in_place) return true;
  const Pair& sent = outgoing_[static_cast<std::size_t>(pair.peer)];
  const std::size_t end_bytes = std::min(pair.size_bytes, (pair.begun + 1) * pair.chunk_bytes);
  return sent.is_moved() || sent.moved * sent.chunk_bytes >= end_bytes;
}

void PairwiseExchange::add_chunk(const Pair& pair, Direction direction,
                                 core::CopyBatch& batch) const {
  const std::size_t first_bytes = pair.begun * pair.chunk_bytes;
  const std::size_t length_bytes = std::min(pair.chunk_bytes, pair.size_bytes - first_bytes);
  std::byte* const slot = pair.lane + node::Lanes::chunk_first_bytes(pair.begun, pair.chunk_bytes);
  const core::CallEnd& end = direction == Direction::pack ? args_.in : args_.out;
  core::CopyBatch one;
  add_copies(end, pair, direction, first_bytes, length_bytes, slot, one);
  batch.add(std::move(one));
}

// Once nobody reads what earlier calls have put there.
bool PairwiseExchange::region_is_free() {
  for (int peer = 0; peer < group_->size() && !region_is_free_; ++peer) {
    if (group_->mailbox(peer).drained.load(std::memory_order_acquire) < base_) return false;
  }
  return region_is_free_ = true;
}

Status PairwiseExchange::has_received(bool& received) {
  received = all_announced(incoming_) && std::ranges::all_of(incoming_, &Pair::is_moved);
  for (device::CopyTicket& ticket : fetches_) {
    bool done = true;
    ACCORD_TRY(poll(ticket, done));
    received = received && done;
  }
  return {};
}

// What is lent until its reader needs nobody's memory any more; of the region the next call knows.
bool PairwiseExchange::has_sent() {
  return std::ranges::all_of(
      outgoing_, [this](Pair& pair) { return pair.is_lent ? has_fetched(pair) : pair.is_moved(); });
}

bool PairwiseExchange::has_fetched(Pair& pair) {
  if (!has_settled(pair.peer)) return false;
  if (group_->parcel(rank(), pair.peer).taken.load(std::memory_order_relaxed) == 0)
    learn_refused(pair);
  return true;
}

// It expects something else, and has said so to its own program.
void PairwiseExchange::learn_refused(Pair& pair) {
  keep_first(mistake_, not_received(pair.peer, pair.size_bytes));
  pair.give_up();
}

void PairwiseExchange::settle() {
  settled_ = true;
  for (const Pair& pair : incoming_) {
    if (pair.is_lent) group_->parcel(pair.peer, rank()).taken.store(1, std::memory_order_relaxed);
  }
  settle(*group_, call_, base_);
}

void PairwiseExchange::settle(node::Group& group, std::uint64_t call, std::uint64_t base) {
  node::Mailbox& mailbox = group.own_mailbox();
  for (auto* counter : {&mailbox.filled, &mailbox.reduced, &mailbox.drained})
    counter->store(base + node::Group::kSlots, std::memory_order_release);
  group.offers().board(group.rank()).settled.store(call + 1, std::memory_order_release);
}

void PairwiseExchange::pass(node::Group& group) {
  if (group.has_given_up()) return;
  const std::uint64_t call = group.offers().take_call();
  group.offers().board(group.rank()).arrived.store(call + 1, std::memory_order_release);
  settle(group, call, group.take(node::Group::kSlots));
}

bool PairwiseExchange::all_announced(const std::vector<Pair>& pairs) {
  return std::ranges::all_of(
      pairs, [](const Pair& pair) { return pair.size_bytes == 0 || pair.announced; });
}

Status PairwiseExchange::poll(device::CopyTicket& ticket, bool& done) {
  done = ticket.handle == nullptr;
  return done ? Status() : group_->runtime().copy_done(ticket, done);
}

}  // namespace accord::coll
