// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the kernels of partitioned reductions tell each other and the host, for
// cuda/partition_kernels.cu: words that hold the number of a round, their order, and where they
// are.
#pragma once

#include "device/cuda/partition_kernels.h"

namespace accord::device::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffff;

__device__ inline std::uint64_t now_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// Many of these are under way at once; a fence follows once they say yes.
__device__ inline std::uint32_t load_word(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline void store_word(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

// Release or acquire, for what comes before or after it. __threadfence_system would be sequentially
// consistent, too, which nobody needs here and all writes to other devices have to be waited for.
__device__ inline void fence_system() { asm volatile("fence.acq_rel.sys;" : : : "memory"); }

// Whether `count` words in a row hold the round.
__device__ inline bool all_hold(const std::uint32_t* words, int count, std::uint32_t round) {
  bool all = true;
#pragma unroll 4
  for (int i = 0; i < count; ++i) all = load_word(words + i) == round && all;
  return all;
}

// Counts one up in a word that starts anew with each `turn`; true for the last of `wanted`. What
// the others did before they counted is then seen, and is told on by a fence. The first of a turn
// takes the place of what is left; the others add.
__device__ inline bool counts_last(std::uint32_t* words, std::uint32_t turn, std::uint32_t wanted) {
  auto* const word = reinterpret_cast<unsigned long long*>(words);
  unsigned long long seen = *static_cast<volatile unsigned long long*>(word);
  while (seen >> 32 != turn) {
    unsigned long long found;
    asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(found)
                 : "l"(word), "l"(seen), "l"(static_cast<unsigned long long>(turn) << 32 | 1)
                 : "memory");
    if (found == seen) return wanted == 1;
    seen = found;
  }
  unsigned long long before;
  asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(word) : "memory");
  return static_cast<std::uint32_t>(before) + 1 == wanted;
}

// Where things are in this rank's words.
struct Words {
  const PartitionReduction& reduction;
  __device__ std::uint32_t* own() const { return reduction.words[reduction.rank]; }
  __device__ std::uint32_t* ready(int partition) const {
    return own() + ready_word(reduction.ranks, partition, 0);
  }
  __device__ std::uint32_t* landed(int partition) const {
    return own() + landed_word(reduction.ranks, reduction.partitions, partition, 0);
  }
  __device__ std::uint32_t* started() const {
    return own() + started_word(reduction.ranks, reduction.partitions, 0);
  }
  __device__ std::uint32_t* through(int partition) const {
    return own() + own_words(reduction.ranks, reduction.partitions) + 2 * partition;
  }
  __device__ std::uint32_t* left() const { return through(reduction.partitions); }
  __device__ std::uint32_t* given(int partition, std::uint32_t slices, std::uint32_t slice) const {
    return own() + given_words(reduction.ranks, reduction.partitions, static_cast<int>(slices)) +
           static_cast<std::size_t>(partition) * slices + slice;
  }
  __device__ std::uint32_t* done(int partition, std::uint32_t slices, std::uint32_t slice) const {
    return through(reduction.partitions + 1) + static_cast<std::size_t>(partition) * slices + slice;
  }
};

}  // namespace accord::device::cuda
