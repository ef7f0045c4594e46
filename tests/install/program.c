/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * What a user builds against an installed Accord: sums device memory over all ranks, and prints by
 * which libaccord.
 */
#define _GNU_SOURCE
#include <accord/accord.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

enum { kCount = 65536 };

int main(int argc, char** argv) {
  static int values[kCount];
  int rank = 0;
  int ranks = 0;
  void* buffer = NULL;
  Dl_info library;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kCount; ++i) values[i] = i + rank;
  if (accord_malloc(&buffer, sizeof values, ACCORD_MEMORY_DEVICE) != 0) return 2;
  accord_memcpy(buffer, values, sizeof values);
  MPI_Allreduce(MPI_IN_PLACE, buffer, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  accord_memcpy(values, buffer, sizeof values);
  for (int i = 0; i < kCount; ++i) {
    if (values[i] != ranks * i + ranks * (ranks - 1) / 2) return 3;
  }
  if (!dladdr((void*)&accord_malloc, &library)) return 4;
  if (rank == 0) printf("%d ranks, %s, %s\n", ranks, accord_last_path(), library.dli_fname);
  accord_free(buffer);
  MPI_Finalize();
  return 0;
}
