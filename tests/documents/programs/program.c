/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * The reader's own program of the documents: long and short reductions, and a call that the host
 * MPI does. */
#include <accord/accord.h>
#include <mpi.h>
#include <stdlib.h>

enum { kLong = 1 << 16, kShort = 100, kCalls = 3 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  void* all[kCalls]; /* buffers that are used again might go another way */
  double sums[kShort];
  for (int call = 0; call < kCalls; ++call) {
    accord_malloc(&all[call], kLong * sizeof(float), ACCORD_MEMORY_DEVICE);
    MPI_Allreduce(MPI_IN_PLACE, all[call], kLong, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void* numbers = all[0];
  MPI_Reduce(numbers, sums, kShort, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

  int* counts = malloc(2 * (size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) {
    counts[i] = 1;
    counts[size + i] = i;
  }
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, numbers, counts, counts + size, MPI_LONG,
                 MPI_COMM_WORLD);
  free(counts);
  for (int call = 0; call < kCalls; ++call) accord_free(all[call]);
  MPI_Finalize();
  return 0;
}
