// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Device memory that another process opens. Memory of cuMemAlloc (cudaMalloc) by a handle of
// CUDA's interprocess functions; memory of the virtual memory API, and of pools, by a file
// descriptor, where the program made it so that it can be exported. Called by cuda/runtime.cpp.
#pragma once

#include <map>
#include <mutex>

#include "base/status.h"
#include "device/cuda/driver.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {

// What ids of allocations have where they are ids of physical memory: those and buffer ids are
// numbered apart.
constexpr std::uint64_t kPhysicalId = std::uint64_t{1} << 63;

// Where `pointer` is in memory that the virtual memory API has mapped, `info` becomes what is
// mapped there: what the driver says otherwise is about the reserved range, which outlives what is
// in it.
void narrow_to_mapping(const Driver& driver, const void* pointer, PointerInfo& info) noexcept;

// Whether the memory has still the id that classify has found; false for none.
bool has_id(const Driver& driver, const void* pointer, std::uint64_t buffer_id) noexcept;

// In the entered context of the memory, which is device memory.
Status export_allocation(const Driver& driver, const PointerInfo& info, ExportedMemory& exported);

// What this process has open. Thread-safe; all in an entered context of the device that is to use
// the memory.
class OpenedMemory {
 public:
  Status open(const Driver& driver, Device device, const ExportedMemory& exported, void*& pointer);
  Status close(const Driver& driver, void* pointer);

 private:
  // How to close it; none of these: by handle.
  struct Opened {
    std::size_t mapped_bytes = 0;
    Pool pool = nullptr;
  };

  std::mutex mutex_;
  std::map<void*, Opened> opened_;
};

}  // namespace accord::device::cuda
