// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What probes have to do with messages: which have been received, and which have been read only.
#include <algorithm>

#include "node/group.h"
#include "node/outbox.h"

namespace accord::node {

bool Outbox::begin_plain(int receiver) {
  const std::lock_guard locked(mutex_);
  if (group_->outbox(group_->rank()).sends_headers[receiver].load()) return false;
  ++plain_[static_cast<std::size_t>(receiver)];
  return true;
}

void Outbox::end_plain(int receiver) {
  const std::lock_guard locked(mutex_);
  --plain_[static_cast<std::size_t>(receiver)];
}

bool Outbox::keep(int receiver, std::span<const std::byte> message, MessageHeader& header) {
  const std::lock_guard locked(mutex_);
  reclaim();
  if (free_slots_.empty()) return false;
  const std::uint16_t number = free_slots_.back();
  free_slots_.pop_back();
  kept_.push_back(number);
  own_[number] = {.size_bytes = message.size()};
  header = begin_message(number, receiver, message.size());
  OutboxSlot& slot = group_->outbox(group_->rank()).slots[number];
  slot.place = {OutboxSlot::kHere, 0};
  std::ranges::copy(message, slot.bytes.begin());
  slot.state.store(OutboxSlot::state_of(header.generation, Stage::waiting),
                   std::memory_order_release);
  return true;
}

// The host MPI has delivered the header, so that the probe which has read it, if there was one, has
// said before that it reads.
Status Outbox::look_for_receive(const MessageHeader& header, bool& received) {
  const std::lock_guard locked(mutex_);
  const OutboxSlot& its = slot(header);
  received = stage(header) == Stage::none;
  if (received) return {};
  const auto& readings = group_->outbox(its.receiver).readings[group_->rank()];
  received = readings.load(std::memory_order_acquire) == 0 &&
             its.probed.load(std::memory_order_acquire) != header.generation;
  return received ? Status() : group_->check_peer(its.receiver);
}

void Outbox::begin_reading(int sender) noexcept {
  group_->outbox(group_->rank()).readings[sender].fetch_add(1);
}

void Outbox::end_reading(int sender) noexcept {
  group_->outbox(group_->rank()).readings[sender].fetch_sub(1, std::memory_order_release);
}

void Outbox::is_probed(const MessageHeader& header) noexcept {
  slot(header).probed.store(header.generation, std::memory_order_release);
}

// Its slot may be another message's by now, but not before this has been said.
void Outbox::is_received(const MessageHeader& header) noexcept {
  std::uint32_t expected = header.generation;
  (void)slot(header).probed.compare_exchange_strong(expected, 0, std::memory_order_release);
}

bool Outbox::is_on_host(const MessageHeader& header) const noexcept {
  const std::int32_t offer = slot(header).place.offer;
  return offer == OutboxSlot::kHere || offer == OutboxSlot::kSpilled;
}

}  // namespace accord::node
