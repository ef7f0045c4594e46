// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The one Gaudi that a process can have, and what memory is known of it. Synapse does not tell what
// a pointer is; but all memory of a Gaudi lies in one range of addresses, of which it tells, and
// which holds none of the process's own. Called by synapse/runtime.cpp and synapse/copy.cpp.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "device/synapse/driver.h"

namespace accord::device::synapse {

class OneDevice {
 public:
  // Whether the process has one: the program's own, or ours. Until then each call asks Synapse.
  bool is_there(const Driver& driver) noexcept;

  // Whether the address is on it; false until it is there.
  bool contains(const void* pointer) const noexcept {
    return address_of(pointer) - start_.load(std::memory_order_relaxed) <
           bytes_.load(std::memory_order_acquire);
  }

  // Takes that of this number, where the process has none yet; the program's own is taken for any.
  // unsupported where we have taken another before: Synapse gives a process one.
  Status acquire(const Driver& driver, int number);

  DeviceId id() const noexcept { return id_.load(std::memory_order_relaxed); }
  // 0 where the program has taken it, since Synapse does not tell which it is.
  int number() const noexcept { return number_.load(std::memory_order_relaxed); }

 private:
  bool find_range(const Driver& driver, DeviceId id) noexcept;

  std::mutex acquiring_;
  std::atomic<Address> start_{0};
  std::atomic<std::uint64_t> bytes_{0};  // 0: no device yet
  std::atomic<DeviceId> id_{0};
  std::atomic<int> number_{0};
  std::atomic<bool> is_ours_{false};
};

// Memory that Accord has allocated, by where it starts.
class Allocations {
 public:
  struct Known {
    void* base;
    std::size_t size_bytes;
    std::uint64_t id;  // never used twice
  };
  void add(void* base, std::size_t size_bytes);
  bool remove(void* base);
  std::optional<Known> find(const void* pointer) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<Address, Known> by_start_;
};

// The modules of this machine that Synapse shows; initialises it.
Status find_modules(const Driver& driver, std::vector<Module>& modules);

}  // namespace accord::device::synapse
