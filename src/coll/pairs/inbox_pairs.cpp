// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/inbox_pairs.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"

namespace accord::coll {
namespace {

// What a sender tells the receiver: the size, or what stands for those of several blocks.
std::uint32_t told_of(const Pair& pair) {
  if (!pair.is_one_block()) return pair.sizes_hash;
  return static_cast<std::uint32_t>(std::min<std::size_t>(pair.size_bytes, UINT32_MAX));
}

// Every packed part begins with a unit: kernels load others byte by byte.
std::size_t whole_units(std::size_t size_bytes) {
  return round_up(size_bytes, device::kInboxUnitBytes);
}

}  // namespace

InboxPairs::InboxPairs(std::shared_ptr<node::Group> inboxes, std::shared_ptr<node::Group> regions,
                       const CollArgs& args)
    : InboxExchange(std::move(inboxes), args, Undescribed()),
      sent_(pairs_of(args.in)),
      received_(pairs_of(args.out)),
      parts_(static_cast<std::size_t>(group_->size())) {
  describe();
  const std::size_t lane_bytes = ticket_.exchange.lane_bytes;
  const auto is_long = [=](const Pair& pair) { return pair.size_bytes > lane_bytes; };
  if (std::ranges::any_of(sent_, is_long) || std::ranges::any_of(received_, is_long)) {
    long_.emplace(std::move(regions), args_, lane_bytes + 1);
  } else {
    PairwiseExchange::pass(*regions);
  }
}

InboxPairs::Pairs InboxPairs::pairs_of(const core::CallEnd& end) const {
  Pairs pairs;
  for (int peer = 0; peer < group_->size(); ++peer) pairs.push_back(pair_of(end, peer));
  return pairs;
}

void InboxPairs::describe() {
  device::InboxExchange& exchange = ticket_.exchange;
  for (int peer = 0; peer < group_->size(); ++peer) {
    const auto rank = static_cast<std::size_t>(peer);
    const std::size_t sent = sent_[rank].size_bytes;
    const std::size_t received = received_[rank].size_bytes;
    device::InboxPart& part = parts_[rank];
    if (sent <= exchange.lane_bytes) part.send_bytes = sent;
    if (received <= exchange.lane_bytes) part.receive_bytes = received;
    if (sent != 0 && peer != group_->rank()) tells_ |= device::inbox_bit(peer);
    if (part.send_bytes != 0) exchange.send_to |= device::inbox_bit(peer);
    if (part.receive_bytes != 0) exchange.receive_from |= device::inbox_bit(peer);
  }
  exchange.parts = parts_;
  const auto own = static_cast<std::size_t>(group_->rank());
  const device::InboxPart& kept = parts_[own];
  if (kept.send_bytes == kept.receive_bytes &&
      (kept.send_bytes == 0 || told_of(sent_[own]) == told_of(received_[own])))
    return;
  exchange.send_to &= ~device::inbox_bit(group_->rank());
  if (kept.receive_bytes != 0 || received_[own].size_bytes == 0)
    refuse(group_->rank(), told_of(sent_[own]));
}

Status InboxPairs::advance(bool& done) {
  done = false;
  if (!short_done_) ACCORD_TRY(InboxExchange::advance(short_done_));
  if (!short_done_) return {};
  bool long_done = true;
  if (long_) {
    long_done = false;
    ACCORD_TRY(advance_part(*long_, long_done, mistake_));
  }
  done = ended_ = long_done;
  return done ? mistake_ : Status();
}

// After a mistake of the program alone nothing is left to stop, and the groups are as good as
// before.
void InboxPairs::stop(bool& done) {
  done = true;
  if (ended_) return;
  bool long_done = true;
  InboxExchange::stop(done);
  if (long_) long_->stop(long_done);
  done = done && long_done;
}

bool InboxPairs::has_block_of(int peer) const {
  const std::size_t size_bytes = received_[static_cast<std::size_t>(peer)].size_bytes;
  if (size_bytes > ticket_.exchange.lane_bytes) return long_->has_block_of(peer);
  return (refused_ & device::inbox_bit(peer)) == 0;
}

// Whether kernels can use all that goes by inboxes as it lies: none of it outside the allocation
// that the buffer is known to be in.
bool InboxPairs::is_direct(const core::CallEnd& end, const Pairs& pairs) const {
  if (!end.on_device || end.shadowed || end.runtime != &group_->runtime() ||
      end.device != group_->device() || !group_->inbox_server().reaches(end.memory))
    return false;
  return std::ranges::all_of(pairs, [&](const Pair& pair) {
    const std::size_t size_bytes = pair.size_bytes;
    if (size_bytes == 0 || size_bytes > ticket_.exchange.lane_bytes) return true;
    if (!pair.is_one_block() || !pair.block.type->dense()) return false;
    const auto first = reinterpret_cast<std::uintptr_t>(address_of(end, pair.block));
    const auto base = reinterpret_cast<std::uintptr_t>(end.memory.base);
    return first >= base && first - base <= end.memory.size_bytes &&
           size_bytes <= end.memory.size_bytes - (first - base);
  });
}

// Packed forms lie one after the other.
Status InboxPairs::begin() {
  const bool in_direct = is_direct(args_.in, sent_);
  const bool out_direct = is_direct(args_.out, received_);
  std::size_t bounce_bytes = 0;
  for (const device::InboxPart& part : parts_)
    bounce_bytes += (in_direct ? 0 : whole_units(part.send_bytes)) +
                    (out_direct ? 0 : whole_units(part.receive_bytes));
  ACCORD_TRY(take_bounce(in_direct, out_direct, bounce_bytes));
  std::byte* next = bounce_;
  const auto place = [&](bool direct, const core::CallEnd& end, const Pair& pair,
                         std::size_t size_bytes) {
    if (size_bytes == 0) return static_cast<std::byte*>(nullptr);
    return direct ? address_of(end, pair.block)
                  : std::exchange(next, next + whole_units(size_bytes));
  };
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    parts_[rank].src = place(in_direct, args_.in, sent_[rank], parts_[rank].send_bytes);
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    parts_[rank].dst = place(out_direct, args_.out, received_[rank], parts_[rank].receive_bytes);
  unpacks_ = !out_direct;
  return in_direct ? Status() : copy(args_.in, sent_, core::CallEnd::Direction::pack, copy_in_);
}

Status InboxPairs::unpack() {
  return unpacks_ ? copy(args_.out, received_, core::CallEnd::Direction::unpack, copy_out_)
                  : Status();
}

// What goes by inboxes, in one batch.
Status InboxPairs::copy(const core::CallEnd& end, const Pairs& pairs,
                        core::CallEnd::Direction direction, device::CopyTicket& ticket) {
  const bool packs = direction == core::CallEnd::Direction::pack;
  core::CopyBatch batch;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const device::InboxPart& part = parts_[rank];
    const std::size_t size_bytes = packs ? part.send_bytes : part.receive_bytes;
    if (size_bytes == 0) continue;
    void* const packed = packs ? const_cast<void*>(part.src) : part.dst;
    add_copies(end, pairs[rank], direction, 0, size_bytes, packed, batch);
  }
  if (batch.empty()) return {};
  if (end.runtime != nullptr) return end.runtime->batch_begin(end.device, batch, ticket);
  device::copy_on_host(batch);
  return {};
}

// What is told of a call with the same turn is read by then.
bool InboxPairs::announce() {
  if (!lanes_are_free(tells_)) return false;
  const device::InboxExchange& exchange = ticket_.exchange;
  auto& entries = group_->manifest(group_->rank()).entries[exchange.turn];
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const int peer = static_cast<int>(rank);
    if ((tells_ & device::inbox_bit(peer)) == 0) continue;
    entries[rank].store(std::uint64_t{exchange.epoch} << 32 | told_of(sent_[rank]),
                        std::memory_order_release);
  }
  return InboxExchange::announce();
}

void InboxPairs::look_at_peers() {
  const device::InboxExchange& exchange = ticket_.exchange;
  const auto own = static_cast<std::size_t>(group_->rank());
  for (int peer = 0; peer < group_->size(); ++peer) {
    const bool receives = (exchange.receive_from & device::inbox_bit(peer)) != 0;
    if (!receives || peer == group_->rank()) continue;
    const std::uint64_t entry =
        group_->manifest(peer).entries[exchange.turn][own].load(std::memory_order_acquire);
    const std::uint32_t told = entry >> 32 == exchange.epoch ? entry & UINT32_MAX : 0;
    if (told != told_of(received_[static_cast<std::size_t>(peer)])) refuse(peer, told);
  }
}

// It is neither awaited nor unpacked any more.
void InboxPairs::refuse(int peer, std::uint32_t told) {
  const auto rank = static_cast<std::size_t>(peer);
  device::InboxPart& part = parts_[rank];
  keep_first(mistake_, received_[rank].is_one_block() ? sends_other(peer, told, part.receive_bytes)
                                                      : sends_other_blocks(peer));
  part.receive_bytes = 0;
  refused_ |= device::inbox_bit(peer);
  ticket_.exchange.receive_from &= ~device::inbox_bit(peer);
}

}  // namespace accord::coll
