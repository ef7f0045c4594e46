// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the messages of an outbox wait: areas of the device pool, made as they are needed and given
// back when nothing has waited there for a while.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/log.h"
#include "node/group.h"
#include "node/housekeeping.h"
#include "node/outbox.h"

namespace accord::node {
namespace {

constexpr std::size_t kAlignmentBytes = 256;

// Of the first area; each later one is as large as all before it together.
constexpr std::size_t kAreaBytesMin = std::size_t{4} << 20;
// From a time when there was no memory to the next try, which may take a driver milliseconds.
constexpr unsigned kCallsToGrowth = 256;

// Those of this process. Never destroyed: MPI may be called from destructors of the program.
struct Register {
  std::mutex mutex;
  std::set<Outbox*> outboxes;
};
Register& register_of_outboxes() {
  static Register& instance = *new Register;
  return instance;
}

}  // namespace

Outbox::Outbox(std::shared_ptr<Group> group, std::size_t size_bytes)
    : group_(std::move(group)),
      size_bytes_(size_bytes),
      own_(OutboxBoard::kSlots),
      free_slots_(OutboxBoard::kSlots),
      plain_(static_cast<std::size_t>(group_->size())) {
  std::iota(free_slots_.rbegin(), free_slots_.rend(), std::uint16_t{0});
  const std::lock_guard locked(register_of_outboxes().mutex);
  register_of_outboxes().outboxes.insert(this);
}

Outbox::~Outbox() {
  detail::things_to_look_after.fetch_sub(static_cast<int>(areas_.size() + retired_.size()),
                                         std::memory_order_relaxed);
  const std::lock_guard locked(register_of_outboxes().mutex);
  register_of_outboxes().outboxes.erase(this);
}

// The first one with room, possibly a new one. What the program has reset goes soon.
Outbox::Area* Outbox::find_area(std::size_t size_bytes, std::size_t& first_bytes) {
  const std::uint64_t life = runtime().context_life(device());
  for (const auto& area : areas_) {
    if (area->life != life)
      area->last_use = {};
    else if (area->find_room(size_bytes, first_bytes))
      return area.get();
  }
  first_bytes = 0;
  return grow(size_bytes);
}

Outbox::Area* Outbox::grow(std::size_t size_bytes) {
  if (calls_to_growth_ != 0 && --calls_to_growth_ != 0) return nullptr;
  free_retired();
  std::size_t total_bytes = 0;
  std::size_t longest_bytes = 0;
  for (const auto* list : {&areas_, &retired_}) {
    for (const auto& area : *list) total_bytes += area->memory.size_bytes();
  }
  for (const auto& area : areas_)
    longest_bytes = std::max(longest_bytes, area->memory.size_bytes());
  const std::size_t left_bytes = size_bytes_ - std::min(size_bytes_, total_bytes);
  const std::size_t wanted_bytes = std::clamp(std::max(kAreaBytesMin, total_bytes), size_bytes,
                                              std::max(size_bytes, left_bytes));
  auto made = std::make_unique<Area>();
  Status leased(StatusCode::unsupported, "node: ACCORD_OUTBOX_BYTES are in use");
  for (const std::size_t area_bytes : {wanted_bytes, size_bytes}) {
    if (leased.ok() || area_bytes > left_bytes) continue;
    leased = lease_device_memory(runtime(), device(), area_bytes, LeaseOf::messages, made->memory);
  }
  if (leased.ok()) {
    made->last_use = Clock::now();
    made->life = runtime().context_life(device());
    detail::things_to_look_after.fetch_add(1, std::memory_order_relaxed);
    return areas_.emplace_back(std::move(made)).get();
  }
  // What is too short for such a message makes room for one that is not.
  if (longest_bytes < size_bytes) retire_empty(Clock::time_point::max());
  if (left_bytes >= size_bytes) {
    log::info("messages are staged through the host: {}", leased.message());
    calls_to_growth_ = kCallsToGrowth;
  }
  return nullptr;
}

void Outbox::retire_empty(Clock::time_point unused_since) {
  std::erase_if(areas_, [&](auto& area) {
    if (!area->waiting.empty() || area->last_use > unused_since) return false;
    retired_.push_back(std::move(area));
    return true;
  });
  free_retired();
}

// Peers close them in their next call.
void Outbox::free_retired() {
  const std::size_t freed = std::erase_if(
      retired_, [&](const auto& area) { return group_->offers().retract(area->memory.segment()); });
  detail::things_to_look_after.fetch_sub(static_cast<int>(freed), std::memory_order_relaxed);
}

void Outbox::tidy(Clock::duration idle) {
  const std::lock_guard locked(mutex_);
  if (!is_attached()) return;
  reclaim();
  retire_empty(Clock::now() - idle);
  announce();
}

void Outbox::tidy_all(Clock::duration idle) noexcept {
  const std::lock_guard locked(register_of_outboxes().mutex);
  for (Outbox* outbox : register_of_outboxes().outboxes) outbox->tidy(idle);
}

bool Outbox::Area::find_room(std::size_t size_bytes, std::size_t& first_bytes) const {
  return find_gap(waiting, memory.size_bytes(), kAlignmentBytes, size_bytes, first_bytes);
}

// Where a message is to wait that has no room yet, and whether its receiver reaches the outbox:
// without an area, whether it knows any.
bool Outbox::use_area(int receiver, Area*& area, Own& own) {
  if (own.size_bytes > size_bytes_) return false;
  std::size_t first_bytes = 0;
  area = find_area(own.size_bytes, first_bytes);
  if (area == nullptr && areas_.empty()) return false;
  const Area& known = area != nullptr ? *area : *areas_.front();
  std::int32_t offer = -1;
  if (!group_->offers().use(known.memory.segment(), receiver, offer)) return false;
  if (area == nullptr) return true;
  own.room = area->memory.data() + first_bytes;
  const auto* const base = static_cast<const std::byte*>(area->memory.segment().base);
  own.home = {offer, static_cast<std::uint64_t>(own.room - base)};
  own.home_generation = group_->offers().generation(offer);
  return true;
}

void Outbox::settle_in(Area& area, std::uint16_t number, const Own& own) {
  const auto first_bytes = static_cast<std::size_t>(own.room - area.memory.data());
  area.waiting.emplace(first_bytes, Waiting{number, own.size_bytes});
  area.last_use = Clock::now();
  group_->offers().hold(own.home.offer);
}

// The first one between those that wait.
bool Outbox::find_gap(const WaitingByPlace& waiting, std::size_t room_bytes,
                      std::size_t alignment_bytes, std::size_t size_bytes,
                      std::size_t& first_bytes) {
  first_bytes = 0;
  for (const auto& [first, message] : waiting) {
    if (first - first_bytes >= size_bytes) return true;
    const std::size_t end = first + message.size_bytes;
    first_bytes = (end + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  }
  return first_bytes <= room_bytes && room_bytes - first_bytes >= size_bytes;
}

}  // namespace accord::node
