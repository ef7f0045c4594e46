// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two-level collectives on many communicators: as many as there are wires for go that way, the rest
// through the host, and those that come after they have been freed go that way again. Every result
// is right.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr int kWires = 128;
constexpr int kComms = kWires + 3;
constexpr int kCount = 1000;

int rank = 0;
int size = 0;
int failures = 0;

void expect(bool right, const char* what, int number) {
  if (right) return;
  std::printf("rank %d, communicator %d: %s\n", rank, number, what);
  ++failures;
}

DeviceBuffer of_equal(float number) {
  return accord::test::on_device(std::vector<float>(kCount, number));
}
bool holds(const DeviceBuffer& buffer, float number) {
  return accord::test::contents<float>(buffer) == std::vector<float>(kCount, number);
}

// Whether it went in two levels.
bool sum_on(MPI_Comm comm, int number) {
  const DeviceBuffer in = of_equal(static_cast<float>(rank + number));
  const DeviceBuffer out = of_equal(-1);
  expect(MPI_Allreduce(in.pointer(), out.pointer(), kCount, MPI_FLOAT, MPI_SUM, comm) == 0,
         "an error", number);
  const auto wanted = static_cast<float>(size * (size - 1) / 2 + size * number);
  expect(holds(out, wanted), "a wrong sum", number);
  return std::strcmp(accord_last_path(), "two-level") == 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<MPI_Comm> comms(kComms, MPI_COMM_NULL);
  for (int number = 0; number < kComms; ++number) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[static_cast<std::size_t>(number)]);
    const bool in_two_levels = sum_on(comms[static_cast<std::size_t>(number)], number);
    expect(in_two_levels == (number < kWires), "another way than expected", number);
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Comm again = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  expect(sum_on(again, kComms), "not in two levels", kComms);
  MPI_Comm_free(&again);
  // One rank of either node, in another order.
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &pair);
  int pair_rank = 0;
  MPI_Comm_rank(pair, &pair_rank);
  const int first = rank - rank % 2;
  const DeviceBuffer in = of_equal(static_cast<float>(rank));
  const DeviceBuffer out = of_equal(-1);
  MPI_Allreduce(in.pointer(), out.pointer(), kCount, MPI_FLOAT, MPI_MAX, pair);
  expect(holds(out, static_cast<float>(first + 1)), "a wrong maximum", -1);
  expect(std::strcmp(accord_last_path(), "two-level") == 0, "not in two levels", -1);
  MPI_Comm_free(&pair);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
