// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Small pieces of the library's own memory on devices, of powers of two, cut from slabs that are
// kept for good: taking some of the driver's costs a hundred microseconds, and would wait for
// kernels; and what peers have opened of them stays open. Thread-safe.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::core {

class DeviceScrap {
 public:
  DeviceScrap() = default;
  ~DeviceScrap();
  DeviceScrap(const DeviceScrap&) = delete;
  DeviceScrap& operator=(const DeviceScrap&) = delete;

  Status take(device::DeviceRuntime& runtime, int device, std::size_t size_bytes);

  std::byte* memory() const noexcept { return memory_; }

 private:
  device::DeviceRuntime* runtime_ = nullptr;
  int device_ = -1;
  std::byte* memory_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace accord::core
