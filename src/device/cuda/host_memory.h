// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Page-locked host memory for staging. Our own mapping, registered, rather than memory of the
// driver: that would vanish with its context, and a program may reset its device while the staging
// pool keeps buffers for the next call. Buffers of the pool's small size classes are cut from slabs
// of one huge page: on pages of 4 KiB a copy of 32 KiB takes 1 us longer (H200: TLB misses of the
// CPU's copy).
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "device/cuda/driver.h"

namespace accord::device::cuda {

// Thread-safe. Memory is page-locked where the program has a context by then, else plain.
class HostMemory {
 public:
  // `driver` may be null. Page-aligned; contents undefined.
  Status allocate(const Driver* driver, std::size_t size_bytes, void*& pointer);
  // What is page-locked already and idle, of at least that size (a power of two from a page to
  // 1 MiB), or null: for who may not wait for kernels, as the driver may where it page-locks.
  void* take(std::size_t size_bytes);
  // `size_bytes` as given to allocate.
  void free(const Driver* driver, void* pointer, std::size_t size_bytes) noexcept;

  // Page-locks memory that is the caller's, for kernels of all devices.
  static Status pin(const Driver* driver, void* pages, std::size_t size_bytes);
  static void unpin(const Driver* driver, void* pages) noexcept;

 private:
  enum class Origin { plain, registered, driver };

  bool cut(const Driver& driver, std::size_t size_bytes, void*& pointer);
  bool add_slab(const Driver& driver);
  Status map(const Driver* driver, std::size_t size_bytes, void*& pointer);
  void unmap(const Driver* driver, void* pointer, std::size_t size_bytes) noexcept;

  std::mutex mutex_;                           // guards what follows
  std::unordered_map<void*, Origin> origins_;  // of what is not plain
  std::array<std::vector<void*>, 64> idle_;    // cut from slabs and given back, by log2 of the size
  std::unordered_map<void*, unsigned> cut_;    // lent now: log2 of the size
  std::byte* slab_ = nullptr;  // the rest of the newest slab; slabs are kept for good
  std::size_t slab_left_bytes_ = 0;
};

}  // namespace accord::device::cuda
