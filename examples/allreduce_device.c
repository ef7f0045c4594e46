/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Adds up a vector over all ranks in device memory, and checks the sum. accord_malloc gives memory
 * of the accelerator where there is one, else of the embedded host runtime, so this runs on any
 * machine. The MPI call is an ordinary MPI_Allreduce.
 *
 *   mpicc allreduce_device.c -o allreduce_device -I ../include -L ../build/lib -laccord \
 *         -Wl,-rpath,$PWD/../build/lib
 *   mpiexec -n 4 ./allreduce_device            (linked with -laccord: no accord run is needed)
 */
#include <accord/accord.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 1 << 20 };

/* Ends the job with the reason when an Accord call failed. */
static void check(int code, const char* call) {
  if (code == ACCORD_OK) return;
  fprintf(stderr, "%s: %s\n", call, accord_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Ranks of one node take its devices in turn. */
static void choose_device(void) {
  MPI_Comm node;
  int local_rank;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_free(&node);
  check(accord_set_device(local_rank % accord_device_count()), "accord_set_device");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  choose_device();

  const size_t size_bytes = kCount * sizeof(double);
  double* on_host = malloc(size_bytes);
  if (on_host == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < kCount; i++) on_host[i] = (rank + 1.0) * (i % 1000);

  void *send, *recv;
  check(accord_malloc(&send, size_bytes, ACCORD_MEMORY_DEVICE), "accord_malloc");
  check(accord_malloc(&recv, size_bytes, ACCORD_MEMORY_DEVICE), "accord_malloc");
  check(accord_memcpy(send, on_host, size_bytes), "accord_memcpy");

  MPI_Allreduce(send, recv, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

  check(accord_memcpy(on_host, recv, size_bytes), "accord_memcpy");
  const double rank_sum = ranks * (ranks + 1) / 2.0;
  int wrong = 0;
  for (int i = 0; i < kCount; i++) wrong += on_host[i] != rank_sum * (i % 1000);

  check(accord_free(send), "accord_free");
  check(accord_free(recv), "accord_free");
  free(on_host);
  int wrong_anywhere;
  MPI_Allreduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("allreduce of %d doubles in %s memory over %d ranks: %s\n", kCount,
           accord_runtime_name(), ranks, wrong_anywhere == 0 ? "correct" : "WRONG");
  }
  MPI_Finalize();
  return wrong_anywhere == 0 ? 0 : 1;
}
