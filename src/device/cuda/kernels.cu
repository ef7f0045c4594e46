// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of reductions, one per element and operation: accord_reduce_<element>_<op>. Compiled
// into the library where nvcc is found (see CMakeLists.txt); loaded and launched by
// cuda/reduce.cpp.
#include "device/cuda/reduce_units.h"

namespace accord::device::cuda {
namespace {

// Spreads the units over all threads.
__device__ ThreadUnits units_of_thread() {
  return {std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
          std::uint64_t{gridDim.x} * blockDim.x};
}

}  // namespace

#define ACCORD_KERNEL_BY(function, element, type, op)                                     \
  extern "C" __global__ void __launch_bounds__(kReduceThreads)                            \
      accord_reduce_##element##_##op(const __grid_constant__ ReduceArguments arguments) { \
    function<type, ReduceOp::op>(arguments, units_of_thread());                           \
  }
#define ACCORD_KERNEL(element, type, op) ACCORD_KERNEL_BY(reduce, element, type, op)
#define ACCORD_ODD_KERNEL(element, type, op) ACCORD_KERNEL_BY(reduce_odd, element, type, op)
ACCORD_REDUCTIONS(ACCORD_KERNEL)
ACCORD_ODD_REDUCTIONS(ACCORD_ODD_KERNEL)
#undef ACCORD_ODD_KERNEL
#undef ACCORD_KERNEL
#undef ACCORD_KERNEL_BY

}  // namespace accord::device::cuda
