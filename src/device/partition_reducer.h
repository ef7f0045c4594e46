// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Who does this rank's part of a PartitionReduction: a kernel that runs beside those of the
// program, for a bounded time. Where nothing becomes ready for that long it leaves, so that it
// never keeps a kernel of the program from running for good, and the host has it come back. Not
// thread-safe, but for the words that it is given.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/partition_reduction.h"

namespace accord::device {

class PartitionReducer {
 public:
  // Waits until the kernel has left: it has where all partitions have arrived.
  virtual ~PartitionReducer() = default;

  // A round begins: its number, the same on all ranks, differs from that of the one before. That
  // one has ended here: all partitions have arrived.
  virtual Status start(std::uint32_t round) = 0;
  // Marks partitions of this rank ready as a kernel would. Once each a round, whoever does it.
  virtual Status mark(std::span<const std::int32_t> partitions) = 0;
  // To be called as long as the round lasts.
  virtual Status progress() = 0;
};

}  // namespace accord::device
