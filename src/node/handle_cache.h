// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Allocations of other processes that are open in this one, one mapping each however many
// communicators use it: opening takes milliseconds. An allocation is known by its process, its
// address and its buffer id, so that one freed and made anew at the same address is another one.
// Closed with its last user, never kept: an open mapping keeps memory that its owner has freed.
// What a reset of this process's device has closed is forgotten. Its users are PeerMemory objects
// (registration.h). Knows no MPI and no vendor. Thread-safe.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/registration.h"

namespace accord::node {

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

  // `memory` becomes what the allocation is here, from its base on, until close() of the same. As
  // PeerMemory::open.
  Status open(device::DeviceRuntime& runtime, int device, const MemoryHandle& handle,
              const Descriptor& descriptor, Opening opening, device::PointerInfo& memory);
  Status close(const device::PointerInfo& memory);

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
    device::PointerInfo memory;
    std::uint64_t life = 0;  // of the context that it was opened in
    std::uint64_t size_bytes = 0;
    std::size_t users = 0;

    // Nothing but the end of that life takes it.
    bool lasts(std::uint64_t life_now) const noexcept {
      return life == life_now || device::exists(memory);
    }
  };
  using Mappings = std::map<Key, Mapping>;

  void forget(Mappings::iterator mapping);

  Limits limits_;
  mutable std::mutex mutex_;
  Mappings mappings_;
  std::size_t mapped_bytes_ = 0;
  Counters counters_;
};

// The one of this process.
HandleCache& handle_cache();

}  // namespace accord::node
