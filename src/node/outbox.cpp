// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/outbox.h"

#include <numeric>

#include "base/log.h"
#include "node/group.h"

namespace accord::node {
namespace {

constexpr std::size_t kAlignmentBytes = 256;

}  // namespace

Outbox::Outbox(std::shared_ptr<Group> group, std::size_t size_bytes)
    : group_(std::move(group)),
      size_bytes_(size_bytes),
      followed_(static_cast<std::size_t>(group_->size())),
      free_slots_(OutboxBoard::kSlots) {
  std::iota(free_slots_.rbegin(), free_slots_.rend(), std::uint16_t{0});
}

Outbox::~Outbox() {
  if (memory_ != nullptr) (void)runtime().free(memory_);
}

bool Outbox::attach(device::DeviceRuntime& runtime, int device) {
  const std::lock_guard locked(mutex_);
  if (!is_attached()) {
    group_->attach(runtime, device);
    attached_.store(true, std::memory_order_release);
  }
  return &group_->runtime() == &runtime && group_->device() == device;
}

device::DeviceRuntime& Outbox::runtime() const noexcept { return group_->runtime(); }
int Outbox::device() const noexcept { return group_->device(); }

void Outbox::follow() {
  if (!is_attached()) return;
  bool has_news = false;
  for (int peer = 0; peer < group_->size(); ++peer) {
    const std::uint64_t posted =
        group_->offers().board(peer).posted.load(std::memory_order_acquire);
    auto& followed = followed_[static_cast<std::size_t>(peer)];
    if (followed.load() == posted) continue;
    followed.store(posted);  // before the sender can know that what it lends is open
    has_news = true;
  }
  if (!has_news) return;
  const std::lock_guard locked(mutex_);
  group_->offers().tend();
}

bool Outbox::may_hear_from(int sender) const noexcept {
  return followed_[static_cast<std::size_t>(sender)].load() != 0;
}

std::byte* Outbox::reserve(int receiver, std::size_t size_bytes, MessageHeader& header,
                           bool& is_full) {
  const std::lock_guard locked(mutex_);
  is_full = false;
  if (size_bytes > size_bytes_ || !make_memory()) return nullptr;
  std::int32_t offer = -1;
  (void)group_->offers().take_call();
  if (!group_->offers().use(memory_info_, receiver, offer)) return nullptr;
  reclaim();
  std::size_t first_bytes = 0;
  if (free_slots_.empty() || !find_room(size_bytes, first_bytes)) {
    is_full = !has_given_up_;
    return nullptr;
  }
  const std::uint16_t number = free_slots_.back();
  free_slots_.pop_back();
  waiting_.emplace(first_bytes, Waiting{number, size_bytes});
  OutboxSlot& slot = group_->outbox(group_->rank()).slots[number];
  std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
  if (generation == 0) ++generation;
  slot.receiver = receiver;
  slot.place = {offer, first_bytes};
  slot.generation.store(generation, std::memory_order_release);
  header = {.cookie = group_->outbox(0).cookie,
            .generation = generation,
            .sender = static_cast<std::uint16_t>(group_->rank()),
            .slot = number,
            .size_bytes = size_bytes};
  sent_.fetch_add(1, std::memory_order_relaxed);
  return memory_ + first_bytes;
}

void Outbox::give_up() noexcept {
  const std::lock_guard locked(mutex_);
  has_given_up_ = true;
}

bool Outbox::make_memory() {
  if (memory_ != nullptr) return true;
  if (has_failed_ || !is_attached()) return false;
  void* memory = nullptr;
  const Status made = runtime().allocate(device(), device::MemoryKind::device, size_bytes_, memory);
  has_failed_ = !made.ok() || !runtime().classify(memory, memory_info_);
  if (!made.ok()) log::info("messages are staged through the host: {}", made.message());
  memory_ = static_cast<std::byte*>(memory);
  return !has_failed_;
}

// The first gap between those that wait.
bool Outbox::find_room(std::size_t size_bytes, std::size_t& first_bytes) const {
  first_bytes = 0;
  for (const auto& [first, message] : waiting_) {
    if (first - first_bytes >= size_bytes) return true;
    const std::size_t end = first + message.size_bytes;
    first_bytes = (end + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  }
  return first_bytes <= size_bytes_ && size_bytes_ - first_bytes >= size_bytes;
}

void Outbox::reclaim() {
  const OutboxBoard& own = group_->outbox(group_->rank());
  std::erase_if(waiting_, [&](const auto& entry) {
    const OutboxSlot& slot = own.slots[entry.second.slot];
    if (slot.taken.load(std::memory_order_acquire) !=
        slot.generation.load(std::memory_order_relaxed))
      return false;
    free_slots_.push_back(entry.second.slot);
    has_given_up_ = false;
    return true;
  });
}

OutboxSlot& Outbox::slot(const MessageHeader& header) const noexcept {
  return group_->outbox(header.sender).slots[header.slot];
}

void Outbox::withdraw(const MessageHeader& header) noexcept { took(header); }

bool Outbox::recognises(const MessageHeader& header) const noexcept {
  if (header.cookie != group_->outbox(0).cookie || header.sender >= group_->size() ||
      header.slot >= OutboxBoard::kSlots)
    return false;
  const OutboxSlot& its = slot(header);
  return its.generation.load(std::memory_order_acquire) == header.generation &&
         its.taken.load(std::memory_order_relaxed) != header.generation &&
         its.receiver == group_->rank();
}

const std::byte* Outbox::find(const MessageHeader& header) {
  fetched_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard locked(mutex_);
  return group_->offers().address(header.sender, slot(header).place);
}

void Outbox::took(const MessageHeader& header) noexcept {
  slot(header).taken.store(header.generation, std::memory_order_release);
}

void Outbox::close() noexcept {
  const std::lock_guard locked(mutex_);
  (void)group_->close_peers();
}

}  // namespace accord::node
