/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * An ordinary MPI program with two calls each of MPI_Send and MPI_Allreduce, on any number of
 * ranks. TOOL_COUNT: how many of each the PMPI tool (tool.c) is to have seen.
 */
#include <mpi.h>

#include "expectations.h"

static void exchange(int rank, int size) {
  int received = -1;
  MPI_Request request;
  MPI_Irecv(&received, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &request);
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("the received rank", received, (rank + size - 1) % size);

  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("the sum of the ranks", sum, size * (size - 1) / 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  exchange(rank, size);
  exchange(rank, size);
  expect_toy_counts();
  const char* tool_expected = getenv("TOOL_COUNT");
  const int* tool_sends = dlsym(RTLD_DEFAULT, "tool_sends");
  const int* tool_allreduces = dlsym(RTLD_DEFAULT, "tool_allreduces");
  const int tool_count = tool_expected == NULL ? -1 : atoi(tool_expected);
  expect("calls of MPI_Send in the tool", tool_sends == NULL ? -1 : *tool_sends, tool_count);
  expect("calls of MPI_Allreduce in the tool", tool_allreduces == NULL ? -1 : *tool_allreduces,
         tool_count);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
