// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels that follow layouts, one per size of a word and width of the arithmetic:
// accord_pack_<bytes>_<narrow|wide>. Consecutive threads move consecutive words of the packed form.
// And accord_copy_list, which copies without a layout. Compiled into the library where nvcc is
// found; loaded and launched by cuda/pack.cpp and cuda/copy_list.cpp.
#include "device/cuda/pack_kernels.h"
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

// The share of one block of several; the first moves the bytes before and behind the words, too.
template <class Word>
__device__ void copy_words(const ListedCopies::One& copy, unsigned block, unsigned blocks) {
  const std::uint64_t size_bytes = copy.size_bytes;
  std::uint64_t head = -reinterpret_cast<std::uintptr_t>(copy.dst) % sizeof(Word);
  if (head > size_bytes) head = size_bytes;
  const std::uint64_t words = (size_bytes - head) / sizeof(Word);
  auto* const dst = reinterpret_cast<Word*>(copy.dst + head);
  const auto* const src = reinterpret_cast<const Word*>(copy.src + head);
  const std::uint64_t step = std::uint64_t{blocks} * blockDim.x;
  std::uint64_t first = std::uint64_t{block} * blockDim.x + threadIdx.x;
  for (; first < words; first += kPackLoadsInFlight * step) {
    Word values[kPackLoadsInFlight];
#pragma unroll
    for (unsigned k = 0; k < kPackLoadsInFlight; ++k)
      if (first + k * step < words) values[k] = src[first + k * step];
#pragma unroll
    for (unsigned k = 0; k < kPackLoadsInFlight; ++k)
      if (first + k * step < words) dst[first + k * step] = values[k];
  }
  if (block != 0) return;
  const std::uint64_t tail = head + words * sizeof(Word);
  for (std::uint64_t i = threadIdx.x; i < head; i += blockDim.x) copy.dst[i] = copy.src[i];
  for (std::uint64_t i = tail + threadIdx.x; i < size_bytes; i += blockDim.x)
    copy.dst[i] = copy.src[i];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kPackThreads)
    accord_copy_list(const __grid_constant__ ListedCopies list) {
  const unsigned index = blockIdx.x / list.blocks_each;
  const unsigned block = blockIdx.x - index * list.blocks_each;
  const ListedCopies::One& copy = list.copies[index];
  const auto apart = reinterpret_cast<std::uintptr_t>(copy.dst) ^  //
                     reinterpret_cast<std::uintptr_t>(copy.src);
  if (apart % sizeof(uint4) == 0) {
    copy_words<uint4>(copy, block, list.blocks_each);
  } else if (apart % sizeof(std::uint32_t) == 0) {
    copy_words<std::uint32_t>(copy, block, list.blocks_each);
  } else {
    copy_words<std::uint8_t>(copy, block, list.blocks_each);
  }
}

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
