// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Device memory of this library: one pool a process and device, which exchange regions, inboxes and
// the outbox have leases of. It consists of segments, allocations that a peer opens once however
// many leases of it there are; one is made when a lease finds no room, and freed when its last
// lease ends. One that the program has ended, as it does when it resets its device, is leased no
// more, and not freed: what lies there is the program's. Device memory is the user's, so there is
// an end to it, for whom there is no room goes another way. Knows no MPI and no vendor.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::node {

// A piece of a pool; goes back when the lease dies.
class DeviceLease {
 public:
  DeviceLease() = default;
  ~DeviceLease() { reset(); }
  DeviceLease(DeviceLease&& other) noexcept { swap(other); }
  DeviceLease& operator=(DeviceLease&& other) noexcept {
    DeviceLease taken(std::move(other));
    swap(taken);
    return *this;
  }
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  // The segment that it is a part of.
  const device::PointerInfo& segment() const noexcept { return segment_; }
  // Nobody may use it any more.
  void reset() noexcept;

 private:
  friend class DevicePools;
  void swap(DeviceLease& other) noexcept;

  device::DeviceRuntime* runtime_ = nullptr;
  int device_ = -1;
  int owner_ = 0;
  device::PointerInfo segment_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  bool is_of_group_ = false;
};

enum class LeaseOf { group, messages };

// unsupported where the pool has no room: not within ACCORD_DEVICE_BYTES, nor within this process's
// part where many of a node may share a device. Groups together get no more than a part of it, but
// for short leases and for those of calls that are longer than most.
Status lease_device_memory(device::DeviceRuntime& runtime, int device, std::size_t size_bytes,
                           LeaseOf purpose, DeviceLease& lease);

// Whose pool a thread's leases are of: tests have several ranks in one process.
inline thread_local int device_pool_owner = 0;

// At least so many processes of this node have such pools, on as many devices as this one sees:
// they are taken to use all of them alike.
void expect_device_pools(int processes, int devices) noexcept;

}  // namespace accord::node
