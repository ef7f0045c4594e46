// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of the fake driver's pools.
#pragma once

#include "fake_cuda_state.h"

namespace accord::device::cuda {

// The caller holds the mutex.
inline Result allocate_from(PoolHandle& pool, Device device, std::size_t size_bytes,
                            DevicePointer* address) {
  Allocation allocation;
  allocation.size_bytes = size_bytes;
  allocation.device = device;
  allocation.pool = &pool;
  allocation.access = 1u << static_cast<unsigned>(device);
  return allocate(allocation, reinterpret_cast<void**>(address));
}

}  // namespace accord::device::cuda
