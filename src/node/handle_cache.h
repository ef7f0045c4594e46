// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Allocations of other processes that are open in this one, one mapping each however many
// communicators use it: opening takes milliseconds. An allocation is known by its process, its
// address and its buffer id, so that one freed and made anew at the same address is another one.
// Closed with its last user, never kept: an open mapping keeps memory that its owner has freed.
// Knows no MPI and no vendor. Thread-safe.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::node {

// An allocation of another process as it was exported there.
struct PeerMemory {
  std::uint64_t process = 0;  // PortAddress::process
  int descriptor = -1;        // as it came from there, where the handle needs one; not owned
  std::uint64_t base = 0;     // its address there
  std::uint64_t buffer_id = 0;
  std::uint64_t size_bytes = 0;
  std::span<const std::byte> handle;
};

class HandleCache {
 public:
  struct Counters {
    std::uint64_t hits = 0;      // an allocation that was open already
    std::uint64_t misses = 0;    // one that was not
    std::uint64_t opens = 0;     // of these, opened
    std::uint64_t refusals = 0;  // of these, not to be had, or too many
    std::uint64_t closes = 0;
  };
  struct Limits {
    std::size_t handles = 1024;
    std::size_t mapped_bytes = std::size_t{1} << 40;  // all memory of seven peers, and more
  };

  HandleCache() = default;
  explicit HandleCache(const Limits& limits) : limits_(limits) {}

  // `start` becomes where the allocation lies here, until close() of the same place.
  Status open(device::DeviceRuntime& runtime, int device, const PeerMemory& memory, void*& start);
  Status close(void* start);
  // The same as open where the allocation is open already; else does nothing and says no.
  bool reuse(device::DeviceRuntime& runtime, int device, const PeerMemory& memory, void*& start);

  Counters counters() const;
  std::size_t handles() const;
  std::size_t mapped_bytes() const;

 private:
  struct Key {
    device::DeviceRuntime* runtime;
    int device;
    std::uint64_t process;
    std::uint64_t base;
    std::uint64_t buffer_id;
    auto operator<=>(const Key&) const = default;
  };
  struct Mapping {
    void* start = nullptr;
    std::uint64_t size_bytes = 0;
    std::size_t users = 0;
  };

  bool reuse_locked(const Key& key, void*& start);

  Limits limits_;
  mutable std::mutex mutex_;
  std::map<Key, Mapping> mappings_;
  std::size_t mapped_bytes_ = 0;
  Counters counters_;
};

// The one of this process.
HandleCache& handle_cache();

}  // namespace accord::node
