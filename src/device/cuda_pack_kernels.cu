// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels that follow layouts, one per size of a word and width of the arithmetic:
// accord_pack_<bytes>_<narrow|wide>. Consecutive threads move consecutive words of the packed form.
// Compiled into the library where nvcc is found; loaded and launched by cuda_pack.cpp.
#include "device/cuda_pack_kernels.h"
#include "device/pack.h"

namespace accord::device::cuda {
namespace {

// All loads of a thread are issued before the first is waited for.
template <class Word, class Index>
__device__ void follow(const PackArguments& arguments) {
  const std::uint64_t words = arguments.length_bytes / sizeof(Word);
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; first < words; first += kPackLoadsInFlight * step) {
    Word values[kPackLoadsInFlight];
    std::byte* targets[kPackLoadsInFlight];
#pragma unroll
    for (unsigned k = 0; k < kPackLoadsInFlight; ++k) {
      const std::uint64_t word = first + k * step;
      std::byte* dst = nullptr;
      const std::byte* src = nullptr;
      targets[k] = nullptr;
      if (word < words && locate_word<Index>(arguments, sizeof(Word), word, dst, src)) {
        targets[k] = dst;
        values[k] = *reinterpret_cast<const Word*>(src);
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kPackLoadsInFlight; ++k) {
      if (targets[k] != nullptr) *reinterpret_cast<Word*>(targets[k]) = values[k];
    }
  }
}

}  // namespace

#define ACCORD_KERNEL(bytes, word, width, index)                                       \
  extern "C" __global__ void __launch_bounds__(kPackThreads)                           \
      accord_pack_##bytes##_##width(const __grid_constant__ PackArguments arguments) { \
    follow<word, index>(arguments);                                                    \
  }
#define ACCORD_KERNELS(bytes, word)                 \
  ACCORD_KERNEL(bytes, word, narrow, std::uint32_t) \
  ACCORD_KERNEL(bytes, word, wide, std::uint64_t)
ACCORD_KERNELS(1, std::uint8_t)
ACCORD_KERNELS(2, std::uint16_t)
ACCORD_KERNELS(4, std::uint32_t)
ACCORD_KERNELS(8, std::uint64_t)
ACCORD_KERNELS(16, uint4)
#undef ACCORD_KERNELS
#undef ACCORD_KERNEL

}  // namespace accord::device::cuda
