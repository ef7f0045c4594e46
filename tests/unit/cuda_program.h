// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The program's side of the CUDA tests: what a user's code calls, beyond what Accord itself needs
// of the driver. With ACCORD_TEST_FAKE_CUDA=path all of it goes to that library instead of the
// driver.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "device/cuda/driver.h"

namespace accord::test {

using device::cuda::CaptureMode;
using device::cuda::Context;
using device::cuda::Device;
using device::cuda::DevicePointer;
using device::cuda::MemoryHandle;
using device::cuda::Pool;
using device::cuda::Result;
using device::cuda::Stream;

// CUmemAllocationProp, and as much of CUmemPoolProps as we fill.
struct PhysicalProperties {
  static constexpr unsigned kPinned = 1;
  unsigned type = kPinned;
  unsigned handle_types = 0;
  device::cuda::MemoryLocation location{device::cuda::kLocationDevice, 0};
  void* unused = nullptr;
  unsigned char flags[8] = {};
};
struct PoolProperties {
  unsigned type = PhysicalProperties::kPinned;
  unsigned handle_types = 0;
  device::cuda::MemoryLocation location{device::cuda::kLocationDevice, 0};
  void* unused = nullptr;
  std::size_t bytes_max = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

struct Program {
  Result (*context_create)(Context*, unsigned, Device) = nullptr;
  Result (*context_destroy)(Context) = nullptr;
  Result (*context_synchronize)() = nullptr;
  Result (*primary_reset)(Device) = nullptr;
  Result (*copy_to_device)(DevicePointer, const void*, std::size_t) = nullptr;
  Result (*copy_to_host)(void*, DevicePointer, std::size_t) = nullptr;
  Result (*copy_within)(DevicePointer, DevicePointer, std::size_t) = nullptr;
  Result (*fill)(DevicePointer, unsigned char, std::size_t) = nullptr;
  Result (*memory_allocate_async)(DevicePointer*, std::size_t, Stream) = nullptr;
  Result (*memory_free_async)(DevicePointer, Stream) = nullptr;
  Result (*memory_create)(MemoryHandle*, std::size_t, const PhysicalProperties*,
                          unsigned long long) = nullptr;
  Result (*memory_granularity)(std::size_t*, const PhysicalProperties*, unsigned) = nullptr;
  Result (*pool_create)(Pool*, const PoolProperties*) = nullptr;
  Result (*memory_allocate_from_pool)(DevicePointer*, std::size_t, Pool, Stream) = nullptr;
  Result (*stream_destroy)(Stream) = nullptr;
  Result (*capture_begin)(Stream, CaptureMode) = nullptr;
  Result (*capture_status)(Stream, int*) = nullptr;
  Result (*capture_end)(Stream, void**) = nullptr;
  Result (*graph_destroy)(void*) = nullptr;
};

// Loads the fake driver, if one is asked for. Before anything else in main().
inline void load_fake_driver() {
  const char* path = std::getenv("ACCORD_TEST_FAKE_CUDA");
  if (path == nullptr) return;
  // Its devices are shared with the children of this program, but not with other programs.
  setenv("FAKE_CUDA_MACHINE", std::to_string(getpid()).c_str(), 0);
  if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(1);
}

// The functions above; call it only where there is a driver.
inline const Program& program() {
  static const Program found = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    Program result;
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          library == nullptr ? nullptr : dlsym(library, name));
      if (function != nullptr) return;
      std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
      std::exit(1);
    };
    find(result.context_create, "cuCtxCreate_v2");
    find(result.context_destroy, "cuCtxDestroy_v2");
    find(result.context_synchronize, "cuCtxSynchronize");
    find(result.primary_reset, "cuDevicePrimaryCtxReset_v2");
    find(result.copy_to_device, "cuMemcpyHtoD_v2");
    find(result.copy_to_host, "cuMemcpyDtoH_v2");
    find(result.copy_within, "cuMemcpyDtoD_v2");
    find(result.fill, "cuMemsetD8_v2");
    find(result.memory_allocate_async, "cuMemAllocAsync");
    find(result.memory_free_async, "cuMemFreeAsync");
    find(result.memory_create, "cuMemCreate");
    find(result.memory_granularity, "cuMemGetAllocationGranularity");
    find(result.pool_create, "cuMemPoolCreate");
    find(result.memory_allocate_from_pool, "cuMemAllocFromPoolAsync");
    find(result.stream_destroy, "cuStreamDestroy_v2");
    find(result.capture_begin, "cuStreamBeginCapture_v2");
    find(result.capture_status, "cuStreamIsCapturing");
    find(result.capture_end, "cuStreamEndCapture");
    find(result.graph_destroy, "cuGraphDestroy");
    return result;
  }();
  return found;
}

}  // namespace accord::test
