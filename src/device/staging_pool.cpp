// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/staging_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/config.h"

namespace accord::device {
namespace {

constexpr unsigned kLeastLog = 12;  // 4 KiB
constexpr unsigned kFineLog = 20;   // above 1 MiB four classes a doubling
constexpr std::size_t kCoarseClasses = kFineLog - kLeastLog + 1;

// A class that no call used during this many misses makes room for one in use. Not fewer: two
// classes in turns that do not fit together would else throw each other out at every call.
constexpr std::uint64_t kStaleMisses = 16;

// Classes of which two buffers take turns. With one for everything, the CPU fills lines for a
// receive that the copy engine has just written for a send: 5 % of a 64 KiB message (H200, MPICH).
constexpr std::size_t kTurnsBytesMin = std::size_t{16} << 10;
constexpr std::size_t kTurnsBytesMax = std::size_t{1} << 20;
constexpr std::size_t kTurnsShare =
    64;  // of what may be kept, at most this part in one such buffer

}  // namespace

std::size_t StagingPool::class_of(std::size_t size_bytes) {
  const std::size_t below = size_bytes - 1;  // size_bytes is at least 1
  const auto log = static_cast<unsigned>(std::bit_width(below));
  if (log <= kLeastLog) return 0;
  if (log <= kFineLog) return log - kLeastLog;
  // 2^(log-1) <= below < 2^log: which quarter of this octave `below` is in
  return kCoarseClasses + 4 * (log - 1 - kFineLog) + ((below >> (log - 3)) & 3U);
}

std::size_t StagingPool::class_bytes(std::size_t size_class) {
  if (size_class < kCoarseClasses) return std::size_t{1} << (kLeastLog + size_class);
  const std::size_t fine = size_class - kCoarseClasses;
  return (5 + fine % 4) << (kFineLog - 2 + fine / 4);
}

std::size_t StagingPool::capacity_bytes(std::size_t size_bytes) {
  return size_bytes == 0 ? 0 : class_bytes(class_of(size_bytes));
}

void StagingBuffer::reset() noexcept {
  if (data_ == nullptr) return;
  if (shelf_ != nullptr) {
    pool_->put_back(*static_cast<StagingPool::Shelf*>(shelf_), size_class_, data_);
  } else if (pool_ != nullptr && is_untouched_) {
    pool_->keep_mapping({data_, size_bytes_});
  } else {
    munmap(data_, size_bytes_);
  }
  is_untouched_ = false;
  data_ = nullptr;
  size_bytes_ = 0;
}

StagingPool::~StagingPool() {
  trim();
  for (auto& slot : shelves_) delete slot.load(std::memory_order_relaxed);
}

StagingPool::Shelf* StagingPool::shelf_of(DeviceRuntime* runtime) {
  // Acquire pairs with the release below: a shelf that is seen is complete.
  for (auto& slot : shelves_) {
    Shelf* shelf = slot.load(std::memory_order_acquire);
    if (shelf == nullptr) break;
    if (shelf->runtime == runtime) return shelf;
  }
  const std::lock_guard lock(shelves_mutex_);
  for (auto& slot : shelves_) {
    Shelf* shelf = slot.load(std::memory_order_relaxed);
    if (shelf == nullptr) {
      shelf = new Shelf;
      shelf->runtime = runtime;
      slot.store(shelf, std::memory_order_release);
    }
    if (shelf->runtime == runtime) return shelf;
  }
  return nullptr;
}

Status StagingPool::acquire(DeviceRuntime* runtime, std::size_t size_bytes, StagingBuffer& buffer) {
  buffer.reset();
  if (size_bytes == 0) return Status();
  Shelf* shelf = runtime == nullptr ? nullptr : shelf_of(runtime);
  if (shelf == nullptr) {
    return Status(StatusCode::invalid_argument, "staging memory of an unknown device runtime");
  }
  const std::size_t size_class = class_of(size_bytes);
  if (size_class >= kClassCount) {
    return Status(StatusCode::no_memory, fmt::format("{} bytes of staging memory", size_bytes));
  }
  const std::size_t capacity = class_bytes(size_class);
  SizeClass& entry = shelf->classes[size_class];
  void* pointer = nullptr;
  {
    const std::lock_guard lock(entry.mutex);
    entry.used_at = clock_.load(std::memory_order_relaxed);
    const bool turns = capacity >= kTurnsBytesMin && capacity <= kTurnsBytesMax &&
                       capacity <= kept_bytes_max_ / kTurnsShare;
    if (!entry.idle.empty() && !(turns && entry.existing == 1)) {
      if (turns && entry.idle.size() >= 2)
        std::swap(entry.idle.back(), entry.idle[entry.idle.size() - 2]);
      pointer = entry.idle.back();
      entry.idle.pop_back();
      ++entry.hits;
    } else {
      ++entry.misses;
      ++entry.existing;
      if (entry.idle.capacity() < entry.existing) entry.idle.reserve(2 * entry.existing);
    }
  }
  if (pointer != nullptr) {
    kept_bytes_.fetch_sub(capacity, std::memory_order_relaxed);
  } else {
    clock_.fetch_add(1, std::memory_order_relaxed);
    if (Status status = runtime->host_allocate(capacity, pointer); !status.ok()) {
      const std::lock_guard lock(entry.mutex);
      --entry.existing;
      return status;
    }
  }
  lend(buffer, *shelf, size_class, pointer, size_bytes);
  return Status();
}

bool StagingPool::acquire_kept(DeviceRuntime* runtime, std::size_t size_bytes,
                               StagingBuffer& buffer) {
  buffer.reset();
  Shelf* shelf = runtime == nullptr ? nullptr : shelf_of(runtime);
  if (shelf == nullptr || size_bytes == 0) return false;
  for (std::size_t size_class = class_of(size_bytes); size_class < kClassCount; ++size_class) {
    SizeClass& entry = shelf->classes[size_class];
    const std::lock_guard lock(entry.mutex);
    if (entry.idle.empty()) continue;
    entry.used_at = clock_.load(std::memory_order_relaxed);
    ++entry.hits;
    kept_bytes_.fetch_sub(class_bytes(size_class), std::memory_order_relaxed);
    lend(buffer, *shelf, size_class, entry.idle.back(), size_bytes);
    entry.idle.pop_back();
    return true;
  }
  return false;
}

void StagingPool::lend(StagingBuffer& buffer, Shelf& shelf, std::size_t size_class, void* pointer,
                       std::size_t size_bytes) {
  buffer.pool_ = this;
  buffer.shelf_ = &shelf;
  buffer.size_class_ = size_class;
  buffer.data_ = pointer;
  buffer.size_bytes_ = size_bytes;
}

Status StagingPool::acquire_sparse(std::size_t size_bytes, StagingBuffer& buffer, void* address) {
  buffer.reset();
  if (size_bytes == 0) return Status();
  const int fixed = address == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* pointer = mmap(address, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  // A kernel that does not know the flag takes the address for a hint.
  if (pointer != MAP_FAILED && address != nullptr && pointer != address) {
    munmap(pointer, size_bytes);
    pointer = MAP_FAILED;
    errno = EEXIST;
  }
  if (pointer == MAP_FAILED) {
    return Status(StatusCode::no_memory, fmt::format("{} bytes of address space: mmap: {}",
                                                     size_bytes, std::strerror(errno)));
  }
  buffer.pool_ = nullptr;
  buffer.shelf_ = nullptr;
  buffer.data_ = pointer;
  buffer.size_bytes_ = size_bytes;
  return Status();
}

Status StagingPool::acquire_mapped(std::size_t size_bytes, StagingBuffer& buffer) {
  buffer.reset();
  if (size_bytes == 0) return Status();
  if (const Mapping kept = take_mapping(size_bytes); kept.pointer != nullptr) {
    buffer.data_ = kept.pointer;
    buffer.size_bytes_ = kept.size_bytes;
    buffer.shelf_ = nullptr;
  } else {
    ACCORD_TRY(acquire_sparse(size_bytes, buffer));
    // A huge page would be zeroed whole for what is written at its start. A wish only.
    (void)madvise(buffer.data_, size_bytes, MADV_NOHUGEPAGE);
  }
  buffer.pool_ = this;
  return Status();
}

StagingPool::Mapping StagingPool::take_mapping(std::size_t size_bytes) noexcept {
  const std::lock_guard lock(mappings_mutex_);
  for (Mapping& one : std::span(mappings_).first(mapped_count_)) {
    if (one.size_bytes < size_bytes) continue;
    const Mapping taken = std::exchange(one, mappings_[--mapped_count_]);
    mapped_bytes_ -= taken.size_bytes;
    return taken;
  }
  return {};
}

void StagingPool::keep_mapping(Mapping mapping) noexcept {
  {
    const std::lock_guard lock(mappings_mutex_);
    if (mapped_count_ < kMappingsKept &&
        mapped_bytes_ + mapping.size_bytes <= kMappedShare * kept_bytes_max_) {
      mappings_[mapped_count_++] = mapping;
      mapped_bytes_ += mapping.size_bytes;
      return;
    }
  }
  munmap(mapping.pointer, mapping.size_bytes);
}

void StagingPool::put_back(Shelf& shelf, std::size_t size_class, void* pointer) noexcept {
  const std::size_t capacity = class_bytes(size_class);
  // The bytes are counted before the buffer can be taken again, so that the count never goes below
  // zero.
  if (kept_bytes_.fetch_add(capacity, std::memory_order_relaxed) + capacity > kept_bytes_max_) {
    if (capacity <= kept_bytes_max_) evict_stale(capacity);
    if (kept_bytes_.load(std::memory_order_relaxed) > kept_bytes_max_) {
      kept_bytes_.fetch_sub(capacity, std::memory_order_relaxed);
      free_one(shelf, size_class, pointer);
      return;
    }
  }
  SizeClass& entry = shelf.classes[size_class];
  const std::lock_guard lock(entry.mutex);
  entry.idle.push_back(pointer);
}

void StagingPool::evict_stale(std::size_t wanted_bytes) noexcept {
  const std::uint64_t now = clock_.load(std::memory_order_relaxed);
  std::size_t freed_bytes = 0;
  for (auto& slot : shelves_) {
    Shelf* shelf = slot.load(std::memory_order_acquire);
    if (shelf == nullptr) return;
    for (std::size_t i = 0; i < kClassCount && freed_bytes < wanted_bytes; ++i) {
      std::size_t idle = 0;
      {
        const SizeClass& entry = shelf->classes[i];
        const std::lock_guard lock(entry.mutex);
        if (now < entry.used_at + kStaleMisses) continue;
        idle = entry.idle.size();
      }
      if (idle == 0) continue;
      free_idle(*shelf, i);
      freed_bytes += idle * class_bytes(i);
    }
  }
}

void StagingPool::free_idle(Shelf& shelf, std::size_t size_class) noexcept {
  SizeClass& entry = shelf.classes[size_class];
  for (;;) {
    void* pointer = nullptr;
    {
      const std::lock_guard lock(entry.mutex);
      if (entry.idle.empty()) return;
      pointer = entry.idle.back();
      entry.idle.pop_back();
    }
    kept_bytes_.fetch_sub(class_bytes(size_class), std::memory_order_relaxed);
    free_one(shelf, size_class, pointer);
  }
}

void StagingPool::free_one(Shelf& shelf, std::size_t size_class, void* pointer) noexcept {
  shelf.runtime->host_free(pointer, class_bytes(size_class));
  SizeClass& entry = shelf.classes[size_class];
  const std::lock_guard lock(entry.mutex);
  --entry.existing;
}

void StagingPool::trim() noexcept {
  unmap_idle();
  for (auto& slot : shelves_) {
    Shelf* shelf = slot.load(std::memory_order_acquire);
    if (shelf == nullptr) return;
    for (std::size_t i = 0; i < kClassCount; ++i) free_idle(*shelf, i);
  }
}

void StagingPool::unmap_idle() noexcept {
  const std::lock_guard lock(mappings_mutex_);
  for (const Mapping& one : std::span(mappings_).first(mapped_count_))
    munmap(one.pointer, one.size_bytes);
  mapped_count_ = mapped_bytes_ = 0;
}

StagingCounters StagingPool::counters() const {
  StagingCounters sum;
  for (const auto& slot : shelves_) {
    const Shelf* shelf = slot.load(std::memory_order_acquire);
    if (shelf == nullptr) break;
    for (const SizeClass& entry : shelf->classes) {
      const std::lock_guard lock(entry.mutex);
      sum.hits += entry.hits;
      sum.misses += entry.misses;
    }
  }
  sum.kept_bytes = kept_bytes_.load(std::memory_order_relaxed);
  return sum;
}

StagingPool& staging_pool() {
  static StagingPool& pool = *new StagingPool(config().staging_bytes_max);
  return pool;
}

}  // namespace accord::device
