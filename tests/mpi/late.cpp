// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A rank that uses the CPU only lends no device memory to a communicator: calls go through the
// host. Once it uses a device, later calls go from device to device, unless that was too often too
// early.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using Bytes = std::vector<std::byte>;

constexpr int kBytes = 5000;
constexpr int kTriesMax = 8;  // Joining::kEarlyAttemptsMax

int rank = 0;
int failures = 0;

// One that has not been called on this communicator before, so that it votes: a broadcast of rank
// 0's device memory to host memory. True when it went from device to device.
bool by_node(MPI_Comm comm, int size_bytes) {
  const Bytes sent(static_cast<std::size_t>(size_bytes), std::byte(size_bytes % 100 + 1));
  Bytes received(sent.size());
  if (rank == 0) {
    const DeviceBuffer buffer(sent);
    MPI_Bcast(buffer.pointer(), size_bytes, MPI_BYTE, 0, comm);
    received = buffer.contents();
  } else {
    MPI_Bcast(received.data(), size_bytes, MPI_BYTE, 0, comm);
  }
  if (received != sent) {
    std::fprintf(stderr, "rank %d: wrong data\n", rank);
    ++failures;
  }
  return std::strcmp(accord_last_path(), "node") == 0;
}

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s (went by %s)\n", rank, what, accord_last_path());
  ++failures;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm patient = MPI_COMM_NULL;
  MPI_Comm tired = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &patient);
  MPI_Comm_dup(MPI_COMM_WORLD, &tired);
  int size_bytes = kBytes;
  for (int call = 0; call < kTriesMax - 1; ++call) {
    expect(!by_node(patient, ++size_bytes), "a rank without a device took part");
    expect(!by_node(tired, size_bytes), "a rank without a device took part");
  }
  expect(!by_node(tired, ++size_bytes), "a rank without a device took part");
  const DeviceBuffer first_use(Bytes(1));
  expect(by_node(patient, ++size_bytes), "not by node once all ranks use a device");
  expect(!by_node(tired, size_bytes), "tried once too often");
  MPI_Comm_free(&patient);
  MPI_Comm_free(&tired);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
