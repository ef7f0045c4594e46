// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of Level Zero that others reach by its file descriptor: other processes, who open the
// handle that the descriptor is a part of, and the CPU, which maps it. Called by
// level_zero/runtime.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <span>

#include "device/device_runtime.h"
#include "device/level_zero/devices.h"

namespace accord::device::level_zero {

// The handle of the allocation, which is device memory, and its descriptor, the caller's own.
// unsupported where one descriptor does not hold all of it (memory that is spread over tiles).
Status export_allocation(const Driver& driver, const PointerInfo& info, ExportedMemory& exported);

// What this process has open. Thread-safe.
class OpenedMemory {
 public:
  Status open(const Driver& driver, const Device& device, const ExportedMemory& exported,
              void*& pointer);
  Status close(const Driver& driver, void* pointer);

 private:
  std::mutex mutex_;
  std::map<void*, ze_context_handle_t> opened_;
};

// Device memory that the CPU has mapped, for copies so short that the calls of a command list take
// longer than the bytes. Thread-safe. A mapping keeps memory that its owner has freed: so there are
// few, of a bounded size, and those of freed memory go when another is made.
class MappedMemory {
 public:
  // Makes the copy, which is a single one of at most ACCORD_MAPPED_COPY_BYTES, by the CPU: between
  // host memory and what it has mapped of the device's. False: it cannot.
  bool copy(const Driver& driver, DeviceRuntime& runtime, std::span<const Copy> copies);

 private:
  // The longest copy that the setting can ask for: it goes by way of the stack.
  static constexpr std::size_t kCopyMax = 4096;
  static constexpr std::size_t kMappingsMax = 64;
  static constexpr std::size_t kMappedBytesMax = std::size_t{1} << 30;

  struct Mapping {
    ze_context_handle_t context;
    std::uint64_t buffer_id;
    std::byte* bytes;  // null: it cannot be mapped
    std::size_t size_bytes;
  };

  // Where the CPU reaches the bytes, calls `work` with their address; false: nowhere.
  template <class Work>
  bool with_bytes(const Driver& driver, DeviceRuntime& runtime, const void* pointer,
                  std::size_t size_bytes, const Work& work);
  // Those of an allocation, from its base on; null where they cannot be mapped.
  std::byte* find(const Driver& driver, const PointerInfo& info);
  void drop_stale(const Driver& driver);
  void drop(std::map<const void*, Mapping>::iterator mapping);

  std::mutex mutex_;  // guards what follows
  std::map<const void*, Mapping> mappings_;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace accord::device::level_zero
