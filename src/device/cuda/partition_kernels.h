// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What cuda/partitions.cpp and the kernels of cuda/partition_kernels.cu agree on.
#pragma once

#include <cstdint>

#include "device/partition_reduction.h"

// X(element, type, op) for the reductions that there are kernels for: what programs sum, multiply
// and compare.
#define ACCORD_PARTITION_REDUCTIONS(X)                 \
  ACCORD_REDUCTIONS_OF_FLOAT(X, uint32, std::uint32_t) \
  ACCORD_REDUCTIONS_OF_FLOAT(X, uint64, std::uint64_t) \
  ACCORD_REDUCTIONS_OF_ORDER(X, int32, std::int32_t)   \
  ACCORD_REDUCTIONS_OF_ORDER(X, int64, std::int64_t)   \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float16, Float16)      \
  ACCORD_REDUCTIONS_OF_FLOAT(X, bfloat16, BFloat16)    \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float32, float)        \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float64, double)

namespace accord::device::cuda {

// Of a block: few enough for kernels of the program to run beside it.
constexpr unsigned kPartitionThreads = 256;

// The only parameter of the kernels that reduce, by value. Unless partitions go by packets, the
// last block watches what lands here; the others reduce: each block of a team has a slice of this
// rank's shares of the team's partitions, those that are its number modulo `teams`. Of pairs
// each has as many slices, one pair's behind the other's.
struct PartitionSchedule {
  PartitionReduction reduction;
  std::uint64_t share;  // elements of a share
  std::uint32_t shares;
  std::uint32_t round;
  std::uint32_t launch;  // its number
  std::uint32_t teams;
  std::uint32_t slices;           // blocks of a team
  std::uint32_t slices_together;  // of them those that work on the same: of pairs on one
  std::uint32_t aligned;          // every address suits its element
  std::uint32_t vectors;          // all addresses are alike modulo a vector
  std::uint64_t patience_ns;      // with nothing to do
  // In host memory that the device reaches.
  std::uint32_t* arrived;  // by partition: the round
  std::uint32_t* left;     // the launch that all blocks have left
};

// Of the kernel that marks partitions for the host.
struct PartitionMarks {
  static constexpr unsigned kMost = 128;
  std::uint32_t* words[kPartitionRanksMax];
  std::int32_t rank;
  std::int32_t ranks;
  std::uint32_t round;
  std::uint32_t count;
  std::int32_t partitions[kMost];
};

}  // namespace accord::device::cuda
