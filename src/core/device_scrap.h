// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A piece of device memory, kept for the next one when it is not needed any more: taking some of
// the driver's costs a hundred microseconds, and would wait for kernels.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::core {

class DeviceScrap {
 public:
  DeviceScrap() = default;
  ~DeviceScrap() { put_back(); }
  DeviceScrap(DeviceScrap&& other) noexcept { swap(other); }
  DeviceScrap& operator=(DeviceScrap&& other) noexcept {
    DeviceScrap taken(std::move(other));
    swap(taken);
    return *this;
  }
  DeviceScrap(const DeviceScrap&) = delete;
  DeviceScrap& operator=(const DeviceScrap&) = delete;

  // At least so many bytes, aligned as any element: what it holds where that is enough, else that
  // goes back.
  Status take(device::DeviceRuntime& runtime, int device, std::size_t size_bytes);
  void put_back() noexcept;
  std::byte* data() const noexcept { return data_; }

 private:
  void swap(DeviceScrap& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
  }

  device::DeviceRuntime* runtime_ = nullptr;
  int device_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace accord::core
