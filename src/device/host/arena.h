// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The memory of the embedded host runtime: one reservation of address space that nobody can touch.
// Its lower half holds the addresses of device memory and stays untouchable for good; the bytes are
// reached through an alias mapping elsewhere. Its upper half holds managed and pinned memory, and
// page-locked memory of our own (kind host), which the CPU may touch. So whether an address can be
// ours takes two compares. Knows nothing of copies or runtimes. Called by host/runtime.cpp only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::device {

// One live allocation. Whoever holds it may use the alias, also while another thread frees the
// memory.
struct HostAllocation {
  HostAllocation() = default;
  HostAllocation(const HostAllocation&) = delete;
  HostAllocation& operator=(const HostAllocation&) = delete;
  ~HostAllocation();

  MemoryKind kind = MemoryKind::device;
  bool imported = false;  // opened from another process
  int device = 0;
  int home = 0;  // the device that has the bytes; another one's where `device` has opened them
  std::byte* user = nullptr;  // what the program holds
  std::byte* alias =
      nullptr;  // where the bytes can be reached; `user` itself unless kind is device
  std::size_t size_bytes = 0;
  std::size_t mapped_bytes = 0;  // size_bytes in whole pages
  int file_descriptor = -1;      // the memory's memfd; -1: cannot be exported
  std::uint64_t buffer_id = 0;
};

using HostAllocationRef = std::shared_ptr<const HostAllocation>;

// Ranges of addresses, given out lowest first, so that freed addresses come back soon: a cache that
// mistakes a new buffer for the old one at its address is found in tests.
class AddressRanges {
 public:
  void add(std::uintptr_t start, std::size_t size_bytes) { release(start, size_bytes); }
  std::uintptr_t take(std::size_t size_bytes);  // 0: none left
  void release(std::uintptr_t start, std::size_t size_bytes);

 private:
  std::map<std::uintptr_t, std::size_t> free_;  // start -> size, no two of them adjacent
};

class HostArena {
 public:
  // Whether the address lies in the reservation: cheap, and false until the first allocation.
  bool may_own(const void* pointer) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address - start_.load(std::memory_order_relaxed) <
           size_bytes_.load(std::memory_order_relaxed);
  }
  bool in_use() const noexcept { return size_bytes_.load(std::memory_order_relaxed) != 0; }

  // Null where no live allocation contains the address.
  HostAllocationRef find(const void* pointer) const;

  Status allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer);
  struct Opening {
    int device;
    int home;
  };
  Status import(Opening of, int file_descriptor, std::size_t size_bytes, void*& pointer);

  // `pointer` must be the start of an allocation, imported or not as said.
  enum class Origin { own, imported };
  Status release(void* pointer, Origin origin);

 private:
  Status reserve();
  Status map_device_memory(HostAllocation& allocation, int imported_descriptor) const;
  Status map_touchable_memory(HostAllocation& allocation) const;
  Status enter(std::shared_ptr<HostAllocation> allocation, int imported_descriptor, void*& pointer);
  AddressRanges& ranges_of(MemoryKind kind) {
    return kind == MemoryKind::device ? device_ranges_ : touchable_ranges_;
  }

  mutable std::shared_mutex mutex_;
  std::atomic<std::uintptr_t> start_{0};
  std::atomic<std::size_t> size_bytes_{0};
  AddressRanges device_ranges_;
  AddressRanges touchable_ranges_;
  std::map<std::uintptr_t, std::shared_ptr<HostAllocation>> allocations_;  // by start
  std::size_t allocated_bytes_ = 0;
  std::uint64_t last_buffer_id_ = 0;
};

// Physical memory of this machine: what the pretend devices share.
std::size_t host_memory_bytes();

}  // namespace accord::device
