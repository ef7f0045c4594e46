// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What is lent and has to go out of its user's buffer: to an area where there is room, else to host
// memory that all ranks of the node share (Group::spill).
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/log.h"
#include "base/rounding.h"
#include "device/staging_pool.h"
#include "node/group.h"
#include "node/outbox.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace accord::node {
namespace {

// What a copy within a device takes: to begin, where it need not wait for a turn, and for each
// byte. And one to host memory.
constexpr std::chrono::microseconds kMoveTime{10};
constexpr std::size_t kMovedBytesPerNanosecond = 1500;
constexpr std::size_t kSpilledBytesPerNanosecond = 5;

// Of pages, wherever: each message has its own, which go with it.
constexpr std::size_t kSpillAlignmentBytes = std::size_t{64} << 10;

// Before anything is written there, which would end the process where there is no memory left.
bool make_pages(std::byte* start, std::size_t size_bytes) {
  const int failed = ::madvise(start, size_bytes, MADV_POPULATE_WRITE);
  return failed == 0 || errno == EINVAL;  // kernels before 5.14 do not know it
}

}  // namespace

// Behind the one that was given last, which takes no look at the others; else the first one.
bool Outbox::find_spill(std::size_t size_bytes, std::size_t& first_bytes) {
  const std::size_t room_bytes = group_->spill(group_->rank()).size();
  const auto is_free = [&](std::size_t first) {
    const auto next = lent_out_.lower_bound(first);
    const auto before = next == lent_out_.begin() ? next : std::prev(next);
    const std::size_t end = next == lent_out_.end() ? room_bytes : next->first;
    return (before == next || before->first + before->second.size_bytes <= first) && first <= end &&
           end - first >= size_bytes;
  };
  const auto is_found = [&] {
    return find_gap(lent_out_, room_bytes, kSpillAlignmentBytes, size_bytes, first_bytes);
  };
  if (is_free(next_spill_bytes_)) {
    first_bytes = next_spill_bytes_;
  } else if (!is_found()) {
    reclaim();
    if (!is_found()) return false;
  }
  next_spill_bytes_ = round_up(first_bytes + size_bytes, kSpillAlignmentBytes);
  return true;
}

// Bytes of a lent message, as they are to lie one behind the other.
Status Outbox::copy_lent(const Own& own, const device::Steps& runs, std::size_t first_bytes,
                         std::size_t length_bytes, std::byte* to) {
  device::CopyBatch batch;
  if (runs.run_bytes == 0)
    batch.plain.append(to, own.source + first_bytes, length_bytes);
  else
    batch.append(device::packing_copy(runs, own.source, first_bytes, length_bytes, to));
  return runtime().copy_batch(device(), batch);
}

// By way of page-locked memory, a piece at a time.
Status Outbox::copy_to_spill(const Own& own, const device::Steps& runs) {
  constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
  std::byte* const start = group_->spill(group_->rank()).data() + own.spill_bytes;
  device::StagingBuffer piece;
  ACCORD_TRY(
      device::staging_pool().acquire(&runtime(), std::min(own.size_bytes, kPieceBytes), piece));
  for (std::size_t done = 0; done < own.size_bytes; done += kPieceBytes) {
    const std::size_t now_bytes = std::min(kPieceBytes, own.size_bytes - done);
    ACCORD_TRY(copy_lent(own, runs, done, now_bytes, static_cast<std::byte*>(piece.data())));
    std::memcpy(start + done, piece.data(), now_bytes);
  }
  return {};
}

void Outbox::clear_spill(const Own& own) noexcept {
  if (own.home.offer != OutboxSlot::kSpilled) return;
  std::byte* const start = group_->spill(group_->rank()).data() + own.spill_bytes;
  (void)::madvise(start, own.size_bytes, MADV_REMOVE);
}

// One that is being moved is nobody else's: a long copy to the host holds up no other message.
Status Outbox::move(const MessageHeader& header) {
  std::unique_lock locked(mutex_);
  Own& own = own_[header.slot];
  OutboxSlot& its = slot(header);
  if (own.source == nullptr || !change(header, Stage::lent, Stage::moving)) return {};
  reclaim();
  Area* area = nullptr;
  const bool has_room = use_area(its.receiver, area, own) && area != nullptr;
  announce();
  Status moved;
  if (has_room) {
    lent_out_.erase(own.spill_bytes);
    settle_in(*area, header.slot, own);
    moved = copy_lent(own, its.runs, 0, own.size_bytes, own.room);
  } else if (make_pages(group_->spill(group_->rank()).data() + own.spill_bytes, own.size_bytes)) {
    own.home = {OutboxSlot::kSpilled, own.spill_bytes};
    spilled_.fetch_add(1, std::memory_order_relaxed);
    locked.unlock();
    moved = copy_to_spill(own, its.runs);
    locked.lock();
  } else {
    static std::atomic<bool> is_told{false};
    if (!is_told.exchange(true))
      log::info("no memory to move messages to: their receivers are waited for");
    (void)change(header, Stage::moving, Stage::lent);
    return {};
  }
  end_loan(own, its);
  its.place = own.home;
  its.runs = {};
  its.offer_generation = own.home_generation;
  its.state.store(
      OutboxSlot::state_of(header.generation, moved.ok() ? Stage::waiting : Stage::broken),
      std::memory_order_release);
  moved_.fetch_add(1, std::memory_order_relaxed);
  return moved;
}

// Whether it would be moved to an area that is there and its receiver has opened.
bool Outbox::has_room_near(const MessageHeader& header) const {
  std::size_t first_bytes = 0;
  const auto area = std::ranges::find_if(
      areas_, [&](const auto& one) { return one->find_room(header.size_bytes, first_bytes); });
  return area != areas_.end() &&
         group_->offers().is_open((*area)->memory.segment(), slot(header).receiver);
}

// So that a send never takes more than twice as long as the better choice would have.
std::chrono::nanoseconds Outbox::patience(const MessageHeader& header) const noexcept {
  const std::lock_guard locked(mutex_);
  const std::size_t bytes_per_nanosecond =
      has_room_near(header) ? kMovedBytesPerNanosecond : kSpilledBytesPerNanosecond;
  const std::chrono::nanoseconds begins =
      takes_turns_.load(std::memory_order_relaxed)
          ? std::chrono::microseconds(own_board().kernel_turn_us.load(std::memory_order_relaxed))
          : kMoveTime;
  return begins + std::chrono::nanoseconds(header.size_bytes / bytes_per_nanosecond);
}

}  // namespace accord::node
