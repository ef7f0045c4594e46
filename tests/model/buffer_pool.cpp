// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "buffer_pool.h"

#include <algorithm>
#include <cstring>

#include "named_reach.h"
#include "program_memory.h"

namespace accord::model {
namespace {

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::size_t kLineBytes = 64;
constexpr unsigned char kIdle = 0xd1;

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
  if (memory.used.empty() && (place == kNone || random_(100) < churn_percent_)) {
    free(memory);
    make(key, memory, length);
    reached("buffer", is_new ? "of new memory" : "of freed memory");
    place = 0;
  } else if (place != kNone) {
    reached("buffer", memory.used.empty() ? "used again" : "beside another");
  }
  if (place == kNone) {
    reached("buffer", "pool in use");
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
  const ProgramAccess access(pointer, used->second, ProgramAccess::Use::write);
  std::memset(access.bytes(), kIdle, used->second);
  memory.used.erase(used);
}

// Of a few sizes, so that one that is made anew finds the same address free.
void BufferPool::make(const Key& key, Memory& memory, std::size_t size_bytes) {
  constexpr std::size_t kStepBytes = 4096;
  const std::size_t several = size_bytes * (1 + random_(3));
  memory.size_bytes =
      (std::max(several, memory.size_bytes) + kStepBytes - 1) / kStepBytes * kStepBytes;
  void* const made = allocate_for_program(key.second, memory.size_bytes);
  if (made == memory.start) reached("buffer", "at old address");
  memory.start = static_cast<std::byte*>(made);
  const ProgramAccess access(made, memory.size_bytes, ProgramAccess::Use::write);
  std::memset(access.bytes(), kIdle, memory.size_bytes);
}

// Leaves its address and size: what is made in its place compares.
void BufferPool::free(Memory& memory) {
  if (memory.start == nullptr) return;
  check_idle(memory, 0, memory.size_bytes);
  free_of_program(memory.start);
}

void BufferPool::check_idle(const Memory& memory, std::size_t first, std::size_t length) {
  const ProgramAccess access(memory.start + first, length, ProgramAccess::Use::read);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(access.bytes());
  if (std::all_of(bytes, bytes + length, [](unsigned char byte) { return byte == kIdle; })) return;
  complain_("written late: device memory that no call uses any more");
}

void BufferPool::clear() {
  const std::lock_guard<std::mutex> locked(mutex_);
  for (auto& [key, memory] : memories_) free(memory);
  memories_.clear();
}

}  // namespace accord::model
