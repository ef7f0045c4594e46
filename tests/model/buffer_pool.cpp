// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "buffer_pool.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fake_device.h"
#include "reach.h"

namespace accord::model {
namespace {

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::size_t kLineBytes = 64;
constexpr unsigned char kIdle = 0xd1;

FakeDevice& device_of(Place place) { return FakeDevice::get(place == Place::device_b ? 1 : 0); }

}  // namespace

std::size_t BufferPool::place_for(const Memory& memory, std::size_t size_bytes) const {
  std::size_t first = 0;
  for (const auto& [offset, length] : memory.used) {
    if (first + size_bytes <= offset) return first;
    first = offset + length;
  }
  return first + size_bytes <= memory.size_bytes ? first : kNone;
}

void* BufferPool::take(const End& end, std::size_t size_bytes) {
  const std::lock_guard<std::mutex> locked(mutex_);
  const Key key{end.pool, end.place};
  Memory& memory = memories_[key];
  const std::size_t length = (size_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  std::size_t place = memory.start != nullptr ? place_for(memory, length) : kNone;
  const bool is_new = memory.start == nullptr;
  if (memory.used.empty() && (place == kNone || scheduler_.random(100) < churn_percent_)) {
    free(key, memory);
    make(key, memory, length);
    reached(is_new ? Reach::buffer_of_new_memory : Reach::buffer_of_freed_memory);
    place = 0;
  } else if (place != kNone) {
    reached(memory.used.empty() ? Reach::buffer_used_again : Reach::buffer_beside_another);
  }
  if (place == kNone) {
    reached(Reach::pool_in_use);
    return nullptr;
  }
  check_idle(memory, place, length);
  memory.used.emplace(place, length);
  return memory.start + place;
}

void BufferPool::give_back(const End& end, void* pointer) {
  const std::lock_guard<std::mutex> locked(mutex_);
  Memory& memory = memories_[{end.pool, end.place}];
  const auto used =
      memory.used.find(static_cast<std::size_t>(static_cast<std::byte*>(pointer) - memory.start));
  std::memset(device_of(end.place).behind(pointer), kIdle, used->second);
  memory.used.erase(used);
}

// Of a few sizes, so that one that is made anew finds the same address free.
void BufferPool::make(const Key& key, Memory& memory, std::size_t size_bytes) {
  constexpr std::size_t kStepBytes = 4096;
  const std::size_t several = size_bytes * (1 + scheduler_.random(3));
  memory.size_bytes =
      (std::max(several, memory.size_bytes) + kStepBytes - 1) / kStepBytes * kStepBytes;
  const auto kind =
      key.second == Place::managed ? device::MemoryKind::managed : device::MemoryKind::device;
  void* made = nullptr;
  if (!device_of(key.second).allocate_for_program(kind, memory.size_bytes, made).ok()) std::abort();
  if (made == memory.start) reached(Reach::memory_at_old_address);
  memory.start = static_cast<std::byte*>(made);
  std::memset(device_of(key.second).behind(made), kIdle, memory.size_bytes);
}

// Leaves its address and size: what is made in its place compares.
void BufferPool::free(const Key& key, Memory& memory) {
  if (memory.start == nullptr) return;
  check_idle(memory, 0, memory.size_bytes);
  (void)device_of(key.second).free(memory.start);
}

void BufferPool::check_idle(const Memory& memory, std::size_t first, std::size_t length) {
  const std::byte* const start = memory.start + first;
  const auto* const bytes =
      reinterpret_cast<const unsigned char*>(FakeDevice::owner(start)->behind(start));
  if (std::all_of(bytes, bytes + length, [](unsigned char byte) { return byte == kIdle; })) return;
  if (!scheduler_.failed())
    scheduler_.fail("written late: device memory that no call uses any more");
}

void BufferPool::clear() {
  const std::lock_guard<std::mutex> locked(mutex_);
  for (auto& [key, memory] : memories_) free(key, memory);
  memories_.clear();
}

}  // namespace accord::model
