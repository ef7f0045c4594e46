// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What cuda/reduce.cpp and the kernels of cuda/kernels.cu agree on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/reduction.h"

namespace accord::device::cuda {

constexpr unsigned kReduceThreads = 512;  // of a block

// What a thread has in flight: so many loads of so many sources. With vectors of 16 bytes a few
// blocks keep an NVLink busy.
constexpr unsigned kReduceLoadsInFlight = 2;
constexpr unsigned kReduceSourcesAtOnce = 4;

constexpr std::size_t kReduceVectorBytes = 16;

// Enough for the ranks of one node in one launch. Any number works, but dst cannot be one of the
// sources of a later launch: that would be overwritten too early.
constexpr unsigned kReduceSourcesMax = 64;
constexpr unsigned kReduceTargetsMax = 64;

// The only parameter of every kernel, by value. Elements [head, head + vectors of them) are read
// and written as vectors, the others one by one.
struct ReduceArguments {
  std::uint64_t count;  // of elements
  std::uint64_t head;   // elements before the first vector
  std::uint64_t vectors;
  std::uint32_t source_count;
  std::uint32_t target_count;
  std::uint32_t aligned;  // 1: every address suits its element; 0: any address
  const void* sources[kReduceSourcesMax];
  void* targets[kReduceTargetsMax];
};

// Which elements are read as vectors, where all addresses are alike modulo the size of one; the
// first of them is `start`.
ACCORD_HOST_DEVICE inline void choose_vectors(std::uintptr_t start, std::size_t element_bytes,
                                              ReduceArguments& arguments) {
  const std::uint64_t count = arguments.count;
  arguments.head = count;
  arguments.vectors = 0;
  const std::size_t head_bytes = (0 - start) % kReduceVectorBytes;
  if (kReduceVectorBytes % element_bytes != 0 || head_bytes % element_bytes != 0) return;
  const std::uint64_t head = head_bytes / element_bytes;
  arguments.head = head < count ? head : count;
  arguments.vectors = (count - arguments.head) * element_bytes / kReduceVectorBytes;
}

}  // namespace accord::device::cuda
