// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// C++ for OpenCL as far as the kernels of launched inboxes use it, in terms of what clang itself
// knows of AMD's GPUs. Behind hip/kernel.h.
#pragma once

#include <cstddef>
#include <cstdint>

#define __kernel extern "C" __global__
#define __global

using uchar = std::uint8_t;
using ushort = std::uint16_t;
using uint = std::uint32_t;
using ulong = std::uint64_t;

using atomic_ulong = ulong;
enum memory_order { memory_order_relaxed };
enum memory_scope { memory_scope_all_svm_devices };
__device__ inline ulong atomic_load_explicit(const volatile atomic_ulong* at, memory_order,
                                             memory_scope) {
  return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline void atomic_store_explicit(volatile atomic_ulong* at, ulong value, memory_order,
                                             memory_scope) {
  __hip_atomic_store(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

__device__ inline std::size_t get_global_id(unsigned) {
  return std::size_t{accord_block()} * accord_threads() + accord_thread();
}
__device__ inline std::size_t get_global_size(unsigned) {
  return std::size_t{accord_blocks()} * accord_threads();
}
