// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// CUDA's words for kernels, in terms of what clang itself knows of AMD's GPUs: included ahead of
// the *.cu files, so that they compile for these as well, without any header or library of ROCm
// (cmake/AccordHipKernels.cmake).
#pragma once

#include <cstddef>

// By which the headers tell that they are compiled for kernels.
#define __CUDACC__ 1

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#define __grid_constant__

// Of a size that is known to the compiler. Ahead of <cstring>, which takes it into std.
extern "C" __device__ inline __attribute__((always_inline)) void* memcpy(void* dst, const void* src,
                                                                         std::size_t size_bytes) {
  return __builtin_memcpy(dst, src, size_bytes);
}
#include <cstring>

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

// Coordinates of which one axis is used.
template <unsigned (*read)()>
struct AccordAxis {
  __device__ operator unsigned() const { return read(); }  // NOLINT: meant to convert
};
template <unsigned (*read)()>
struct AccordCoordinate {
  AccordAxis<read> x;
};

__device__ inline unsigned accord_thread() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline unsigned accord_block() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline unsigned accord_threads() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ inline unsigned accord_blocks() {
  return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}

constexpr __device__ AccordCoordinate<accord_thread> threadIdx{};
constexpr __device__ AccordCoordinate<accord_block> blockIdx{};
constexpr __device__ AccordCoordinate<accord_threads> blockDim{};
constexpr __device__ AccordCoordinate<accord_blocks> gridDim{};
