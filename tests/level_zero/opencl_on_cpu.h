// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// C++ for OpenCL as far as the kernels of Level Zero use it, for the compiler of the CPU.
#pragma once

#include <cstdint>

#define __kernel extern "C" [[gnu::visibility("hidden")]]
#define __global

using uchar = std::uint8_t;
using ushort = std::uint16_t;
using uint = std::uint32_t;
using ulong = std::uint64_t;
struct uint4 {
  uint words[4];
};

// Atomic accesses, as far as they go.
using atomic_ulong = ulong;
enum memory_order { memory_order_relaxed };
enum memory_scope { memory_scope_all_svm_devices };
inline ulong atomic_load_explicit(const volatile atomic_ulong* at, memory_order, memory_scope) {
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}
inline void atomic_store_explicit(volatile atomic_ulong* at, ulong value, memory_order,
                                  memory_scope) {
  __atomic_store_n(at, value, __ATOMIC_RELAXED);
}

// The work-item that runs in this thread.
struct WorkItem {
  std::size_t id = 0;
  std::size_t count = 0;  // of all of the launch
};
inline thread_local WorkItem work_item;

inline std::size_t get_global_id(unsigned) { return work_item.id; }
inline std::size_t get_global_size(unsigned) { return work_item.count; }
