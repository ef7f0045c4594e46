// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Host memory for staging, kept between calls: page-locking memory costs milliseconds, a call takes
// microseconds. Buffers come from DeviceRuntime::host_allocate in size classes (powers of two up to
// 1 MiB, then four steps a doubling, so that at most a fifth of a large buffer is waste). What
// returns is kept for the next call of its class up to a total; beyond, classes out of use are
// given up first. Knows nothing of MPI or of copies. Called by all rooms above that stage (core,
// coll, p2p, partitioned, node, net, shim). Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::device {

class StagingPool;

// Memory lent by a pool, page-aligned; goes back when the handle dies. Contents start undefined.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  StagingBuffer(StagingBuffer&& other) noexcept { swap(other); }
  StagingBuffer& operator=(StagingBuffer&& other) noexcept {
    StagingBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;
  ~StagingBuffer() { reset(); }

  void* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }  // as asked for; mapped, or more
  bool empty() const noexcept { return data_ == nullptr; }
  void reset() noexcept;
  // Of acquire_mapped: hardly a page of it was written to, so that it may serve again.
  void is_untouched() noexcept { is_untouched_ = true; }

 private:
  friend class StagingPool;
  void swap(StagingBuffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(shelf_, other.shelf_);
    std::swap(size_class_, other.size_class_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(is_untouched_, other.is_untouched_);
  }

  StagingPool* pool_ = nullptr;  // null: of acquire_sparse, which no pool keeps
  void* shelf_ = nullptr;        // null: mapped
  std::size_t size_class_ = 0;
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  bool is_untouched_ = false;
};

struct StagingCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;    // each cost one host_allocate
  std::size_t kept_bytes = 0;  // idle, ready for the next call
};

class StagingPool {
 public:
  explicit StagingPool(std::size_t kept_bytes_max) : kept_bytes_max_(kept_bytes_max) {}
  ~StagingPool();  // every buffer has come back by then
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Lends at least size_bytes of the runtime's fastest host memory; 0 bytes give an empty buffer.
  // What `buffer` held before goes back. Costs about 50 ns where a kept buffer fits.
  Status acquire(DeviceRuntime* runtime, std::size_t size_bytes, StagingBuffer& buffer);

  // The same where a kept buffer is large enough, the smallest of those; else lends nothing and
  // says no. Asks nothing of the driver.
  bool acquire_kept(DeviceRuntime* runtime, std::size_t size_bytes, StagingBuffer& buffer);

  // A huge span of which only parts are touched: address space, not page-locked, zero at first,
  // never kept. At that address, of a page, where one is given and nothing is there.
  Status acquire_sparse(std::size_t size_bytes, StagingBuffer& buffer, void* address = nullptr);

  // Address space that hardly anything will be written to, not page-locked. To map it anew each
  // time would take 10 us and more (windows of 16 MiB, 2 x H200: 0.31 TB/s instead of 0.36), so
  // some of what comes back untouched is lent again, with what it holds: together up to four
  // times what may be kept page-locked.
  Status acquire_mapped(std::size_t size_bytes, StagingBuffer& buffer);

  // Frees all idle memory.
  void trim() noexcept;

  StagingCounters counters() const;

  // Bytes that really back a request, for tests and for those who plan chunks.
  static std::size_t capacity_bytes(std::size_t size_bytes);

 private:
  friend class StagingBuffer;
  static constexpr std::size_t kClassCount = 9 + 4 * 26;  // up to 2^46 bytes
  static constexpr std::size_t kShelfCount = 8;  // runtimes with staging memory in one process

  struct SizeClass {
    mutable std::mutex mutex;
    std::vector<void*>
        idle;  // capacity for every buffer that exists: returning one never allocates
    std::size_t existing = 0;  // lent and idle
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t used_at = 0;  // clock_ at the latest acquire
  };
  static constexpr std::size_t kMappingsKept = 64;
  static constexpr std::size_t kMappedShare = 4;
  struct Mapping {
    void* pointer = nullptr;
    std::size_t size_bytes = 0;
  };
  struct Shelf {
    DeviceRuntime* runtime = nullptr;
    std::array<SizeClass, kClassCount> classes;
  };

  static std::size_t class_of(std::size_t size_bytes);
  static std::size_t class_bytes(std::size_t size_class);
  Shelf* shelf_of(DeviceRuntime* runtime);
  void lend(StagingBuffer& buffer, Shelf& shelf, std::size_t size_class, void* pointer,
            std::size_t size_bytes);
  void put_back(Shelf& shelf, std::size_t size_class, void* pointer) noexcept;
  Mapping take_mapping(std::size_t size_bytes) noexcept;
  void keep_mapping(Mapping mapping) noexcept;
  void unmap_idle() noexcept;
  void evict_stale(std::size_t wanted_bytes) noexcept;
  void free_idle(Shelf& shelf, std::size_t size_class) noexcept;
  void free_one(Shelf& shelf, std::size_t size_class, void* pointer) noexcept;

  const std::size_t kept_bytes_max_;
  std::atomic<std::size_t> kept_bytes_{0};
  std::atomic<std::uint64_t> clock_{0};  // counts misses
  std::array<std::atomic<Shelf*>, kShelfCount> shelves_{};
  std::mutex shelves_mutex_;
  std::mutex mappings_mutex_;
  std::array<Mapping, kMappingsKept> mappings_{};  // the first `mapped_count_` of them
  std::size_t mapped_count_ = 0;
  std::size_t mapped_bytes_ = 0;
};

// The pool of this process, bounded by ACCORD_STAGING_BYTES_MAX. Never destroyed: the driver may
// already be gone when static objects are.
StagingPool& staging_pool();

}  // namespace accord::device
