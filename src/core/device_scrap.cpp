// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/device_scrap.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace accord::core {
namespace {

constexpr std::size_t kScrapBytesMin = 1024;

// Memory of devices in pieces of a power of two, cut from slabs and never given back.
class Scraps {
 public:
  Status take(device::DeviceRuntime& runtime, int device, std::size_t size_bytes, void*& memory) {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[{&runtime, device, size_bytes}];
    if (idle.empty()) {
      const std::size_t slab_bytes = std::max(kSlabBytes, size_bytes);
      void* slab = nullptr;
      ACCORD_TRY(runtime.allocate(device, device::MemoryKind::device, slab_bytes, slab));
      for (std::size_t at = 0; at + size_bytes <= slab_bytes; at += size_bytes)
        idle.push_back(static_cast<std::byte*>(slab) + at);
    }
    memory = idle.back();
    idle.pop_back();
    return {};
  }
  void put_back(device::DeviceRuntime& runtime, int device, std::size_t size_bytes, void* memory) {
    const std::lock_guard lock(mutex_);
    idle_[{&runtime, device, size_bytes}].push_back(memory);
  }

 private:
  static constexpr std::size_t kSlabBytes = std::size_t{256} << 10;
  std::mutex mutex_;
  std::map<std::tuple<device::DeviceRuntime*, int, std::size_t>, std::vector<void*>> idle_;
};

// Never destroyed: the driver may be gone when static objects are.
Scraps& scraps() {
  static Scraps& instance = *new Scraps;
  return instance;
}

}  // namespace

Status DeviceScrap::take(device::DeviceRuntime& runtime, int device, std::size_t size_bytes) {
  const std::size_t wanted_bytes = std::bit_ceil(std::max(size_bytes, kScrapBytesMin));
  if (data_ != nullptr && runtime_ == &runtime && device_ == device && size_bytes_ >= wanted_bytes)
    return {};
  put_back();
  void* memory = nullptr;
  ACCORD_TRY(scraps().take(runtime, device, wanted_bytes, memory));
  runtime_ = &runtime;
  device_ = device;
  data_ = static_cast<std::byte*>(memory);
  size_bytes_ = wanted_bytes;
  return {};
}

void DeviceScrap::put_back() noexcept {
  if (data_ != nullptr) scraps().put_back(*runtime_, device_, size_bytes_, data_);
  data_ = nullptr;
}

}  // namespace accord::core
