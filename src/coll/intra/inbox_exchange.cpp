// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/intra/inbox_exchange.h"

#include <atomic>
#include <utility>

#include "base/log.h"
#include "base/stages.h"

namespace accord::coll {
namespace {

using node::Kind;

// Polls between two looks after the peers.
constexpr unsigned kPollsPerInboxCheck = 64;
std::atomic<std::uint64_t> inbox_calls_done{0};
std::atomic<std::uint64_t> packet_calls_done{0};

}  // namespace

InboxExchange::InboxExchange(std::shared_ptr<node::Group> group, const CollArgs& args)
    : InboxExchange(std::move(group), args, Undescribed()) {
  describe();
}

InboxExchange::InboxExchange(std::shared_ptr<node::Group> group, const CollArgs& args, Undescribed)
    : group_(std::move(group)), args_(args), number_(group_->take(1)) {
  device::InboxExchange& exchange = ticket_.exchange;
  exchange = group_->inbox_exchange();
  exchange.epoch = static_cast<std::uint32_t>(number_ % 0xffffffff) + 1;
  exchange.turn = number_ % device::kInboxLanesPerRank;
}

std::uint64_t InboxExchange::everyone() const {
  return group_->size() == 64 ? ~std::uint64_t{0} : device::inbox_bit(group_->size()) - 1;
}

// Who sends what to whom, in the terms of the server.
void InboxExchange::describe() {
  const node::Call& call = *args_.exchange;
  const std::size_t block = call.block_bytes;
  const std::size_t all = block * static_cast<std::size_t>(call.size);
  const std::uint64_t root = device::inbox_bit(call.root);
  const bool is_root = call.root == group_->rank();
  const node::Pattern pattern = node::pattern_of(call.kind);
  const std::uint64_t own = device::inbox_bit(group_->rank());
  device::InboxExchange& exchange = ticket_.exchange;
  exchange.block_bytes = block;
  exchange.op = call.op;
  exchange.element = call.element;
  exchange.send_to = pattern.to_root ? root : pattern.from_root && !is_root ? 0 : everyone();
  exchange.receive_from = pattern.from_root ? root : pattern.to_root && !is_root ? 0 : everyone();
  // From the ranks before this one, for those behind it.
  if (pattern.is_prefix) {
    const std::uint64_t before = own - 1;
    exchange.receive_from = call.kind == Kind::scan ? before | own : before;
    exchange.send_to = everyone() & ~(call.kind == Kind::scan ? before : before | own);
  }
  // What is in its place already.
  if (call.kind == Kind::bcast && is_root) exchange.receive_from = 0;
  if (call.kind == Kind::bcast) exchange.send_to &= ~own;
  if (keeps_own_block()) {
    exchange.send_to &= ~own;
    exchange.receive_from &= ~own;
  }
  exchange.send_stride_bytes = pattern.blocks_in ? block : 0;
  exchange.receive_stride_bytes = pattern.blocks_out ? block : 0;
  if (exchange.send_to != 0) in_bytes_ = pattern.blocks_in ? all : block;
  if (exchange.receive_from != 0) out_bytes_ = pattern.blocks_out ? all : block;
  if (pattern.gathers_to_all() && args_.in_place)
    first_in_bytes_ = block * static_cast<std::size_t>(group_->rank());
}

// A root whose own block of a gather or scatter stays where it is.
bool InboxExchange::keeps_own_block() const {
  const Kind kind = args_.exchange->kind;
  return args_.in_place && (kind == Kind::gather || kind == Kind::scatter);
}

Status InboxExchange::advance(bool& done) {
  bool ready = false;
  device::InboxServer& server = group_->inbox_server();
  switch (state_) {
    case State::begin:
      ACCORD_TRY(group_->check_self());
      stages::enter(stages::Stage::copy_in);
      ACCORD_TRY(begin());
      state_ = State::packing;
      [[fallthrough]];
    case State::packing:
      ACCORD_TRY(args_.in.copied(copy_in_, ready));
      if (!ready || !announce()) break;
      state_ = State::arriving;
      stages::enter(stages::Stage::wait);
      [[fallthrough]];
    case State::arriving:
      if (!lanes_are_free(ticket_.exchange.send_to)) break;
      if (ticket_.sent) {
        if (!all_are_here()) break;
        look_at_peers();
      }
      stages::enter(stages::Stage::move);
      ticket_.patience = ticket_.sent ? device::InboxTicket::Patience::long_wait
                                      : device::InboxTicket::Patience::short_wait;
      ticket_.state = device::InboxTicket::State::idle;
      if (!moves_nothing_more()) ACCORD_TRY(server.begin(ticket_));
      state_ = State::running;
      [[fallthrough]];
    case State::running:
      ACCORD_TRY(server.poll(ticket_, ready));
      if (ticket_.state == device::InboxTicket::State::late) state_ = State::arriving;
      if (!ready) break;
      note_begun();
      look_at_peers();
      stages::enter(stages::Stage::copy_out);
      ACCORD_TRY(unpack());
      state_ = State::unpacking;
      [[fallthrough]];
    case State::unpacking: {
      bool second_ready = false;
      ACCORD_TRY(args_.out.copied(copy_out_, ready));
      ACCORD_TRY(args_.out.copied(second_copy_out_, second_ready));
      if (!ready || !second_ready) break;
      group_->own_mailbox().drained.store(number_ + 1, std::memory_order_release);
      state_ = State::done;
      inbox_calls_done.fetch_add(1, std::memory_order_relaxed);
      if (ticket_.exchange.in_packets) packet_calls_done.fetch_add(1, std::memory_order_relaxed);
      [[fallthrough]];
    }
    case State::done:
      break;
  }
  done = state_ == State::done;
  return done || ++checks_ % kPollsPerInboxCheck != 0 ? Status() : group_->check_peers();
}

void InboxExchange::report() {
  log::info("node: {} collectives through inboxes, {} of them in packets",
            inbox_calls_done.load(std::memory_order_relaxed),
            packet_calls_done.load(std::memory_order_relaxed));
}

void InboxExchange::stop(bool& done) {
  group_->give_up();
  done = true;
  if (state_ == State::running) group_->inbox_server().stop(ticket_, done);
  for (auto [end, copy] : {std::pair{&args_.in, &copy_in_},
                           {&args_.out, &copy_out_},
                           {&args_.out, &second_copy_out_}}) {
    bool copied = true;
    if (!end->copied(*copy, copied).ok()) copied = true;
    done = done && copied;
  }
}

Status InboxExchange::begin() {
  device::InboxExchange& exchange = ticket_.exchange;
  const auto usable = [&](const core::CallEnd& end) {
    return end.usable_by(group_->runtime(), group_->device()) &&
           group_->inbox_server().reaches(end.memory);
  };
  in_direct_ = in_bytes_ == 0 || usable(args_.in);
  out_direct_ = out_bytes_ == 0 || usable(args_.out);
  const std::size_t in_bounce_bytes = in_direct_ ? 0 : in_bytes_;
  const std::size_t out_bounce_bytes = out_direct_ ? 0 : out_bytes_;
  ACCORD_TRY(take_bounce(in_direct_, out_direct_, in_bounce_bytes + out_bounce_bytes));
  if (out_bytes_ != 0)
    exchange.dst = out_direct_ ? args_.out.address(0) : bounce_ + in_bounce_bytes;
  if (in_bytes_ == 0) return {};
  exchange.src = in_direct_ ? args_.in.address(first_in_bytes_) : bounce_;
  if (in_direct_) return {};
  return args_.in.copy(core::CallEnd::Direction::pack, first_in_bytes_, in_bytes_, bounce_,
                       copy_in_);
}

// On the device only what comes from there and goes there: to and from host memory the packed form
// crosses once either way.
Status InboxExchange::take_bounce(bool in_direct, bool out_direct, std::size_t size_bytes) {
  const auto is_here = [&](const core::CallEnd& end) {
    return end.on_device && !end.shadowed && end.runtime == &group_->runtime() &&
           end.device == group_->device();
  };
  const bool on_device = (in_direct || is_here(args_.in)) && (out_direct || is_here(args_.out));
  ticket_.exchange.dst_on_host = !out_direct && !on_device;
  return size_bytes == 0 ? Status() : group_->bounce_memory(size_bytes, on_device, bounce_);
}

Status InboxExchange::unpack() {
  if (out_direct_) return {};
  const auto copy = [&](std::size_t low, std::size_t high, device::CopyTicket& ticket) {
    if (low == high) return Status();
    return args_.out.copy(core::CallEnd::Direction::unpack, low, high - low,
                          static_cast<std::byte*>(ticket_.exchange.dst) + low, ticket);
  };
  if (!keeps_own_block()) return copy(0, out_bytes_, copy_out_);
  const std::size_t block = args_.exchange->block_bytes;
  const std::size_t own = block * static_cast<std::size_t>(group_->rank());
  ACCORD_TRY(copy(0, own, copy_out_));
  return copy(own + block, out_bytes_, second_copy_out_);
}

bool InboxExchange::announce() {
  group_->own_mailbox().filled.store(number_ + 1, std::memory_order_release);
  return true;
}

bool InboxExchange::moves_nothing_more() const {
  return (ticket_.exchange.receive_from | (ticket_.sent ? 0 : ticket_.exchange.send_to)) == 0;
}

bool InboxExchange::lanes_are_free(std::uint64_t peers) const {
  for (int peer = 0; peer < group_->size(); ++peer) {
    if ((peers & device::inbox_bit(peer)) == 0 || peer == group_->rank()) continue;
    std::uint64_t& begun = group_->known_begun(peer);
    if (begun + 1 < number_) begun = group_->mailbox(peer).drained.load(std::memory_order_acquire);
    if (begun + 1 < number_) return false;
  }
  return true;
}

// Whoever has sent its part of this call is through with all earlier ones.
void InboxExchange::note_begun() {
  for (int peer = 0; peer < group_->size(); ++peer) {
    const bool received = (ticket_.exchange.receive_from & device::inbox_bit(peer)) != 0;
    if (received) group_->known_begun(peer) = number_;
  }
}

// Whether those that it receives from are in this very call.
bool InboxExchange::all_are_here() const {
  for (int peer = 0; peer < group_->size(); ++peer) {
    const bool receives = (ticket_.exchange.receive_from & device::inbox_bit(peer)) != 0;
    if (receives && peer != group_->rank() &&
        group_->mailbox(peer).filled.load(std::memory_order_acquire) <= number_)
      return false;
  }
  return true;
}

}  // namespace accord::coll
