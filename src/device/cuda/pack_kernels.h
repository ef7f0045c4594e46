// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What cuda/pack.cpp, cuda/copy_list.cpp and the kernels of cuda/pack_kernels.cu agree on, besides
// pack.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace accord::device::cuda {

constexpr unsigned kPackThreads = 256;  // of a block

// Words of a thread that are on their way at once: rows of a few bytes leave most of each memory
// transaction unused, and host memory is a microsecond away.
constexpr unsigned kPackLoadsInFlight = 4;

// Copies that one launch makes at most: with the parameters of a kernel they have 4 KiB.
constexpr unsigned kListedCopiesMax = 64;

// The only parameter of accord_copy_list, by value.
struct ListedCopies {
  struct One {
    std::byte* dst;
    const std::byte* src;
    std::uint64_t size_bytes;
  };
  One copies[kListedCopiesMax];
  std::uint32_t blocks_each;  // of the launch, which has as many as all need
};

}  // namespace accord::device::cuda
