// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Buffers that two ranks send each other messages in again and again.
#pragma once

#include <accord/accord.h>
#include <mpi.h>

#include <vector>

#include "device_buffer.h"

namespace accord::test {

using Numbers = std::vector<int>;

constexpr int kCount = 4096;
constexpr int kTag = 5;
constexpr int kEarlyTag = 8;

inline Numbers numbers(int first, int count = kCount) {
  Numbers made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = first + i;
  return made;
}
inline void write(const DeviceBuffer& buffer, const Numbers& values) {
  (void)accord_memcpy(buffer.pointer(), values.data(), values.size() * sizeof(int));
}

// Both ranks send and receive in the same two buffers until they are lent to each other.
struct Buffers {
  DeviceBuffer out = on_device(numbers(0));
  DeviceBuffer in = on_device(Numbers(kCount, -1));

  void warm_up(int rank) const {
    if (rank > 1) return;
    for (int round = 0; round < 12; ++round) {
      MPI_Sendrecv(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, in.pointer(), kCount, MPI_INT,
                   1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
};

}  // namespace accord::test
