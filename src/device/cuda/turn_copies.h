// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies on a device whose kernels take turns with those of other processes (kernel_place.h). A
// turn comes after 150 us and more, and some copies wait for one: the driver copies within a device
// by a kernel, and writes less than about 28 KiB from the host to a device by the same queue. Copy
// engines wait for nobody. So here what is short goes to the device as a rectangle of two rows,
// which the driver leaves to an engine (so words of 4 or 8 bytes do not arrive whole), and what
// stays within the device goes by way of host memory as long as that is sooner than a turn (H100,
// driver 580, 4 processes: 8 B to the device 13 us instead of 348, 64 KiB within it 35 instead of
// 352).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "device/cuda/copy.h"
#include "device/cuda/driver.h"
#include "device/cuda/host_memory.h"

namespace accord::device::cuda {

// Of one runtime. Thread-safe.
class TurnCopies {
 public:
  explicit TurnCopies(HostMemory& host_memory) : host_memory_(host_memory) {}

  // Kernels take turns on `device` from now on, for good. Page-locks memory for copies within it.
  void expect(const Driver& driver, Device device) noexcept;
  bool are_taken(Device device) const noexcept;

  // As the functions of copy_list.h, which do what is sooner by kernels, and everything where no
  // turns are taken.
  Status copy(const Driver& driver, Device device, std::span<const Copy> copies);
  Status begin(const Driver& driver, Device device, std::span<const Copy> copies,
               CopyTicket& ticket);
  // As DeviceRuntime::copy_begin_beside_kernels.
  Status begin_beside_kernels(const Driver& driver, Device device, std::span<const Copy> copies,
                              CopyTicket& ticket);
  Status done(const Driver& driver, CopyTicket& ticket, bool& done);

 private:
  Status begin_in_turns(const Driver& driver, Device device, std::span<const Copy> copies,
                        CopyTicket& ticket, bool& begun);
  // Host memory on the way from one place of a device to another.
  struct Bounce {
    void* memory = nullptr;
    std::size_t size_bytes = 0;
    bool is_own = false;
  };
  Bounce take(std::size_t size_bytes);
  void free(const Driver& driver, const Bounce& bounce) noexcept;

  HostMemory& host_memory_;
  std::array<std::atomic<bool>, 64> expected_{};
  std::atomic<std::size_t> pending_{0};  // of bounces_
  std::mutex mutex_;                     // guards what follows
  std::vector<void*> own_;  // kept for this, idle: staging takes all that is idle elsewhere
  std::unordered_map<const void*, Bounce> bounces_;  // by the handle of their ticket
};

}  // namespace accord::device::cuda
