// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned_prequest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace accord::core {
namespace {

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

DevicePrequest::~DevicePrequest() {
  if (memory_ != nullptr) scraps().put_back(runtime_, device_, size_bytes_, memory_);
}

accord_prequest* DevicePrequest::for_kernels() const noexcept {
  return static_cast<accord_prequest*>(runtime_.address_for_library(memory_));
}

Status DevicePrequest::create(accord_prequest shown, std::size_t transfers) {
  const std::size_t counters =
      (shown.sides & ACCORD_PARTITION_SENDS) != 0 ? static_cast<std::size_t>(shown.partitions) + transfers : 0;
  const std::size_t used_bytes = sizeof shown + counters * sizeof(std::uint64_t);
  constexpr std::size_t kLeastBytes = 1024;
  size_bytes_ = std::bit_ceil(std::max(used_bytes, kLeastBytes));
  void* memory = nullptr;
  ACCORD_TRY(scraps().take(runtime_, device_, size_bytes_, memory));
  memory_ = static_cast<std::byte*>(memory);
  auto* const first = reinterpret_cast<std::uint64_t*>(for_kernels() + 1);
  shown.partition_marks = first;
  shown.transfer_marks = first + shown.partitions;
  std::vector<std::byte> bytes(used_bytes);
  std::memcpy(bytes.data(), &shown, sizeof shown);
  return write(0, bytes.data(), bytes.size());
}

// The word that kernels look at comes last, and by itself.
Status DevicePrequest::connect(const accord_prequest::accord_partition_link& link) {
  const std::uint32_t connected = 1;
  ACCORD_TRY(write(offsetof(accord_prequest, link), &link, sizeof link));
  return write(offsetof(accord_prequest, connected), &connected, sizeof connected);
}

Status DevicePrequest::write(std::size_t offset_bytes, const void* bytes, std::size_t size_bytes) {
  const device::Copy copy{.dst = memory_ + offset_bytes, .src = bytes, .row_bytes = size_bytes};
  return runtime_.copy(device_, {&copy, 1});
}

}  // namespace accord::core
