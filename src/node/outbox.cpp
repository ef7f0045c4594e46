// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/outbox.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/group.h"

namespace accord::node {

// Each message asks: who is attached stays so, and takes no lock.
bool Outbox::attach(device::DeviceRuntime& runtime, int device) {
  if (!is_attached()) attach_first(runtime, device);
  return &group_->runtime() == &runtime && group_->device() == device;
}

void Outbox::attach_first(device::DeviceRuntime& runtime, int device) {
  const std::lock_guard locked(mutex_);
  if (is_attached()) return;
  group_->attach(runtime, device);
  worker_ = &device::DirectWorker::of(runtime, device);
  const device::KernelPlace kernels = runtime.kernel_place(device);
  OutboxBoard& board = group_->outbox(group_->rank());
  board.kernel_server.store(kernels.server, std::memory_order_relaxed);
  board.kernel_device.store(kernels.device, std::memory_order_relaxed);
  board.kernel_turn_us.store(kernels.turn_us, std::memory_order_relaxed);
  group_->outbox(0).attached.fetch_add(1, std::memory_order_acq_rel);
  attached_.store(true, std::memory_order_release);
}

void Outbox::look_for_turns() noexcept {
  const std::uint32_t attached = group_->outbox(0).attached.load(std::memory_order_acquire);
  if (attached == known_attached_.load(std::memory_order_relaxed)) return;
  known_attached_.store(attached, std::memory_order_relaxed);
  const auto place = [&](int rank) {
    const OutboxBoard& board = group_->outbox(rank);
    return device::KernelPlace{.device = board.kernel_device.load(std::memory_order_relaxed),
                               .server = board.kernel_server.load(std::memory_order_relaxed),
                               .turn_us = board.kernel_turn_us.load(std::memory_order_relaxed)};
  };
  const device::KernelPlace mine = place(group_->rank());
  int sharers = 1;
  for (int rank = 0; rank < group_->size(); ++rank) {
    const device::KernelPlace its = place(rank);
    if (rank == group_->rank() || its.device != mine.device) continue;
    ++sharers;
    if (!device::takes_long_turns(mine, its)) continue;
    takes_turns_.store(true, std::memory_order_relaxed);
    runtime().expect_turns(device());
    return;
  }
  if (mine.device != 0) worker_->share_with(sharers);
}

device::DeviceRuntime& Outbox::runtime() const noexcept { return group_->runtime(); }
int Outbox::device() const noexcept { return group_->device(); }

bool Outbox::has_news() const noexcept {
  return group_->outbox(0).news.load(std::memory_order_acquire) !=
         known_news_.load(std::memory_order_relaxed);
}

// Tells the peers to look at what this rank lends.
void Outbox::announce() noexcept {
  const std::uint64_t posted =
      group_->offers().board(group_->rank()).posted.load(std::memory_order_relaxed);
  if (posted == announced_) return;
  announced_ = posted;
  group_->outbox(0).news.fetch_add(1, std::memory_order_release);
}

void Outbox::follow() {
  if (!is_attached()) return;
  known_news_.store(group_->outbox(0).news.load(std::memory_order_acquire));
  const std::lock_guard locked(mutex_);
  group_->offers().tend();
  announce();
}

bool Outbox::may_hear_from(int sender) const noexcept {
  return group_->outbox(sender).sends_headers[group_->rank()].load(std::memory_order_acquire);
}

// Whether a user's buffer may be lent: memory of the device on which receivers open it, all of it.
bool Outbox::is_within(const Source& source) const noexcept {
  const device::PointerInfo& memory = source.memory;
  const auto* const base = static_cast<const std::byte*>(memory.base);
  return source.start != nullptr && memory.kind == device::MemoryKind::device &&
         memory.runtime == &runtime() && memory.device == device() && source.start >= base &&
         source.start + source.span_bytes <= base + memory.size_bytes;
}

// Short runs are packed for another device: a link carries them one by one.
bool Outbox::is_reached_well(const Source& source, int receiver) const noexcept {
  constexpr std::size_t kRunBytesLeast = 256;
  const auto device_of = [&](int rank) {
    return group_->outbox(rank).kernel_device.load(std::memory_order_relaxed);
  };
  return source.runs.run_bytes == 0 || source.runs.run_bytes >= kRunBytesLeast ||
         device_of(receiver) == device_of(group_->rank());
}

Outbox::Room Outbox::reserve(int receiver, std::size_t size_bytes, const Source& source,
                             MessageHeader& header, bool again) {
  constexpr unsigned kCallsPerLook = 16;
  const std::lock_guard locked(mutex_);
  Room room;
  if (!is_attached()) return room;
  node::Offers& offers = group_->offers();
  // What was freed is withdrawn though nothing comes from the peers. What they lend is opened by
  // follow() alone: from then on they send headers, and the receives under way must bear them.
  if (++calls_ % kCallsPerLook == 0) offers.tend_own();
  // Waiting for room is one use of a buffer, however often it is looked for.
  if (!again) (void)offers.take_call();
  std::int32_t offer = -1;
  Own own{.size_bytes = size_bytes};
  room.is_lent = is_within(source) && is_reached_well(source, receiver) &&
                 offers.use(source.memory, receiver, offer);
  reclaim_for(room.is_lent);
  room.is_lent = room.is_lent && find_spill(size_bytes, own.spill_bytes);
  Area* area = nullptr;
  const bool is_open = room.is_lent || use_area(receiver, area, own);
  announce();
  std::atomic<bool>& sends_headers = group_->outbox(group_->rank()).sends_headers[receiver];
  if (!is_open || (plain_[static_cast<std::size_t>(receiver)] != 0 && !sends_headers.load()))
    return {};
  if ((area == nullptr && !room.is_lent) || free_slots_.empty())
    return {.start = nullptr, .is_lent = false, .is_full = !has_given_up_};
  sends_headers.store(true, std::memory_order_release);
  const std::uint16_t number = free_slots_.back();
  free_slots_.pop_back();
  header = begin_message(number, receiver, size_bytes);
  OutboxSlot& slot = group_->outbox(group_->rank()).slots[number];
  if (room.is_lent) {
    own.source = source.start;
    lent_out_.emplace(own.spill_bytes, Waiting{number, size_bytes});
    offers.hold(offer);
    const auto* const base = static_cast<const std::byte*>(source.memory.base);
    slot.place = {offer, static_cast<std::uint64_t>(source.start - base)};
    slot.runs = source.runs;
    slot.offer_generation = offers.generation(offer);
    lent_.fetch_add(1, std::memory_order_relaxed);
  } else {
    settle_in(*area, number, own);
    room.start = own.room;
    slot.place = own.home;
    slot.offer_generation = own.home_generation;
  }
  own_[number] = own;
  slot.state.store(
      OutboxSlot::state_of(header.generation, room.is_lent ? Stage::lent : Stage::waiting),
      std::memory_order_release);
  return room;
}

// In a slot that nobody else uses, which nobody looks at before its state is there.
MessageHeader Outbox::begin_message(std::uint16_t number, int receiver,
                                    std::size_t size_bytes) noexcept {
  OutboxSlot& slot = group_->outbox(group_->rank()).slots[number];
  auto generation = static_cast<std::uint32_t>(slot.state.load(std::memory_order_relaxed) >> 8) + 1;
  if (generation == 0) ++generation;
  slot.receiver = receiver;
  slot.size_bytes = size_bytes;
  slot.fetch = Fetch::by_size;
  slot.runs = {};
  MessageHeader header{.cookie = group_->outbox(0).cookie[1],
                       .generation = generation,
                       .sender = static_cast<std::uint8_t>(group_->rank()),
                       .slot = number,
                       .size_bytes = size_bytes};
  header.ticket = ticket_of(header);
  sent_.fetch_add(1, std::memory_order_relaxed);
  return header;
}

void Outbox::fetch_by_engine(MessageHeader& header) noexcept {
  header.fetch = slot(header).fetch = Fetch::by_engine;
}

void Outbox::give_up() noexcept {
  const std::lock_guard locked(mutex_);
  has_given_up_ = true;
}

// Whether nothing of a message is needed any more.
bool Outbox::is_over(std::uint16_t number) {
  const OutboxSlot& slot = group_->outbox(group_->rank()).slots[number];
  Own& own = own_[number];
  const auto stage = static_cast<Stage>(slot.state.load(std::memory_order_acquire) & 0xff);
  if (stage == Stage::taken) end_loan(own, slot);
  // Of one that has failed its sender has to learn first.
  return (stage == Stage::taken || stage == Stage::failed) && own.source == nullptr;
}

// A message that is lent takes no room but a slot, and to look at all that are under way takes
// longer than to send one more: so only now and then.
void Outbox::reclaim_for(bool is_lent) {
  constexpr unsigned kLentPerLook = 32;
  if (!is_lent || ++lent_since_look_ >= kLentPerLook || free_slots_.empty()) reclaim();
}

void Outbox::reclaim() {
  lent_since_look_ = 0;
  const auto frees = [this](std::uint16_t number) {
    if (!is_over(number)) return false;
    const Own& own = own_[number];
    if (own.home.offer >= 0) group_->offers().let_go(own.home.offer);
    clear_spill(own);
    free_slots_.push_back(number);
    has_given_up_ = false;
    return true;
  };
  const auto frees_entry = [&](const auto& entry) { return frees(entry.second.slot); };
  for (const auto& area : areas_) std::erase_if(area->waiting, frees_entry);
  std::erase_if(lent_out_, frees_entry);
  std::erase_if(kept_, frees);
}

OutboxSlot& Outbox::slot(const MessageHeader& header) const noexcept {
  return group_->outbox(header.sender).slots[header.slot];
}

// None where the slot is of another message.
Stage Outbox::stage(const MessageHeader& header) const noexcept {
  const std::uint64_t state = slot(header).state.load(std::memory_order_acquire);
  return state >> 8 == header.generation ? static_cast<Stage>(state & 0xff) : Stage::none;
}

bool Outbox::change(const MessageHeader& header, Stage from, Stage to) noexcept {
  std::uint64_t expected = OutboxSlot::state_of(header.generation, from);
  return slot(header).state.compare_exchange_strong(
      expected, OutboxSlot::state_of(header.generation, to), std::memory_order_acq_rel);
}

void Outbox::end_loan(Own& own, const OutboxSlot& slot) noexcept {
  if (own.source == nullptr) return;
  own.source = nullptr;
  group_->offers().let_go(slot.place.offer);
}

void Outbox::withdraw(const MessageHeader& header) noexcept {
  const std::lock_guard locked(mutex_);
  if (change(header, Stage::lent, Stage::taken)) end_loan(own_[header.slot], slot(header));
  (void)change(header, Stage::waiting, Stage::taken);
  (void)change(header, Stage::broken, Stage::taken);
}

void Outbox::fail(const MessageHeader& header) noexcept {
  slot(header).state.store(OutboxSlot::state_of(header.generation, Stage::broken),
                           std::memory_order_release);
}

bool Outbox::is_lent(const MessageHeader& header) const {
  const std::lock_guard locked(mutex_);
  return own_[header.slot].source != nullptr;
}

// Who waits for a window of them looks at each of them again and again: without the lock, but for
// now and then, when the receiver's life is looked at.
Status Outbox::look(const MessageHeader& header, Loan& loan) {
  constexpr unsigned kLooksPerCheck = 16;
  static thread_local unsigned looks = 0;
  if (const Stage now = stage(header);
      now == Stage::lent || now == Stage::moving || now == Stage::fetching) {
    loan = now == Stage::lent ? Loan::untouched : Loan::being_read;
    if (++looks % kLooksPerCheck != 0) return {};
    const std::lock_guard locked(mutex_);
    return group_->check_peer(slot(header).receiver);
  }
  const std::lock_guard locked(mutex_);
  loan = Loan::ended;
  Own& own = own_[header.slot];
  const Stage now = stage(header);
  if (now == Stage::none || own.source == nullptr) return {};
  end_loan(own, slot(header));
  if (now != Stage::failed) return {};
  return {StatusCode::device_error,
          fmt::format("node: rank {} could not read the message", slot(header).receiver)};
}

// All of it that a ticket tells; its own differs from one that is none.
MessageHeader Outbox::named_by(std::uint64_t ticket) const noexcept {
  const std::uint64_t message = ticket ^ group_->outbox(0).cookie[0];
  MessageHeader header{.cookie = group_->outbox(0).cookie[1],
                       .generation = static_cast<std::uint32_t>(message >> 32),
                       .sender = static_cast<std::uint8_t>(message >> 16),
                       .slot = static_cast<std::uint16_t>(message)};
  header.ticket = ticket_of(header);
  return header;
}

std::uint64_t Outbox::ticket_of(const MessageHeader& header) const noexcept {
  const std::uint64_t message =
      std::uint64_t{header.generation} << 32 | std::uint64_t{header.sender} << 16 | header.slot;
  return message ^ group_->outbox(0).cookie[0];
}

int Outbox::receiver_of(const MessageHeader& header) const noexcept {
  return slot(header).receiver;
}

Outbox::Clock::time_point Outbox::begin_wait(int receiver, Clock::duration takes) noexcept {
  group_->outbox(receiver).awaited.fetch_add(1, std::memory_order_relaxed);
  waits_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard locked(mutex_);
  awaited_moves_ += takes;
  return Clock::now() + awaited_moves_;
}

void Outbox::end_wait(int receiver, Clock::duration takes) noexcept {
  group_->outbox(receiver).awaited.fetch_sub(1, std::memory_order_relaxed);
  waits_.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard locked(mutex_);
  awaited_moves_ -= takes;
}

Outbox::Attention Outbox::attention_of(int receiver) const noexcept {
  const OutboxBoard& board = group_->outbox(receiver);
  return {.is_looking = board.waits.load(std::memory_order_relaxed) != 0 &&
                        board.posted.load(std::memory_order_relaxed) != 0,
          .looks = board.looks.load(std::memory_order_acquire)};
}

bool Outbox::is_awaited() const noexcept {
  return own_board().awaited.load(std::memory_order_relaxed) != 0;
}

OutboxBoard& Outbox::own_board() const noexcept { return group_->outbox(group_->rank()); }

bool Outbox::recognises(const MessageHeader& header) const noexcept {
  return header.cookie == group_->outbox(0).cookie[1] && header.ticket == ticket_of(header) &&
         waits_for_us(header);
}

bool Outbox::completes(MessageHeader& header) const noexcept {
  const MessageHeader named = named_by(header.ticket);
  if (named.ticket != header.ticket || !waits_for_us(named)) return false;
  header = named;
  header.size_bytes = slot(header).size_bytes;
  header.fetch = slot(header).fetch;
  return header.size_bytes < sizeof header;
}

bool Outbox::waits_for_us(const MessageHeader& header) const noexcept {
  if (header.sender >= group_->size() || header.slot >= OutboxBoard::kSlots) return false;
  const Stage now = stage(header);
  return now != Stage::none && now != Stage::taken && now != Stage::failed &&
         slot(header).receiver == group_->rank();
}

Status Outbox::begin_fetch(const MessageHeader& header, const std::byte*& start) {
  fetched_.fetch_add(1, std::memory_order_relaxed);
  const OutboxSlot& its = slot(header);
  while (!change(header, Stage::waiting, Stage::fetching) &&
         !change(header, Stage::lent, Stage::fetching)) {
    // It may have been moved in the meantime.
    const Stage now = stage(header);
    if (now != Stage::moving && now != Stage::waiting && now != Stage::lent) {
      (void)change(header, Stage::broken, Stage::taken);
      return {StatusCode::device_error,
              fmt::format("node: rank {} could not send the message", header.sender)};
    }
    ::sched_yield();
    const std::lock_guard locked(mutex_);
    ACCORD_TRY(group_->check_peer(header.sender));
  }
  if (is_on_host(header)) {
    start = its.place.offer == OutboxSlot::kHere
                ? its.bytes.data()
                : group_->spill(header.sender).data() + its.place.offset_bytes;
    return {};
  }
  const std::lock_guard locked(mutex_);
  start = group_->offers().find(header.sender, its.place, its.offer_generation);
  if (start != nullptr) return {};
  end_fetch(header, Fetched::no);
  return {StatusCode::device_error,
          fmt::format("node: rank {} no longer lends the message", header.sender)};
}

void Outbox::end_fetch(const MessageHeader& header, Fetched fetched) noexcept {
  slot(header).state.store(
      OutboxSlot::state_of(header.generation,
                           fetched == Fetched::yes ? Stage::taken : Stage::failed),
      std::memory_order_release);
}

// What its sender is moving is soon at its end.
void Outbox::dismiss(const MessageHeader& header) noexcept {
  const auto end = [&](Stage from) { return change(header, from, Stage::taken); };
  while (!end(Stage::waiting) && !end(Stage::lent) && !end(Stage::broken)) {
    const Stage now = stage(header);
    if (now == Stage::none || now == Stage::taken || now == Stage::fetching || now == Stage::failed)
      return;
    ::sched_yield();
    const std::lock_guard locked(mutex_);
    if (!group_->check_peer(header.sender).ok()) return;
  }
}

void Outbox::dismiss(std::uint64_t ticket) noexcept {
  const MessageHeader header = named_by(ticket);
  if (header.ticket == ticket && waits_for_us(header)) dismiss(header);
}

Outbox::Counters Outbox::counters() const noexcept {
  return {sent_.load(),    lent_.load(),    moved_.load(),
          spilled_.load(), fetched_.load(), quick_.load()};
}

void Outbox::close() noexcept {
  const std::lock_guard locked(mutex_);
  (void)group_->close_peers();
}

}  // namespace accord::node
