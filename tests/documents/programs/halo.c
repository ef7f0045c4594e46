/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * The mistakes that docs/checking.md shows, each made once by both of two ranks. */
#include <accord/accord.h>
#include <mpi.h>

enum { kCount = 1024 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int peer = 1 - rank;
  void *given, *taken, *sums;
  accord_malloc(&given, kCount * sizeof(double), ACCORD_MEMORY_DEVICE);
  accord_malloc(&taken, kCount * sizeof(double), ACCORD_MEMORY_DEVICE);
  accord_malloc(&sums, kCount * sizeof(double), ACCORD_MEMORY_DEVICE);
  double* halo = given;
  MPI_Request requests[2];

  MPI_Irecv(halo, kCount, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(halo + kCount - 1, 1, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

  MPI_Irecv(taken, kCount, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[0]);
  if (MPI_Send(halo + 1, kCount, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
    MPI_Cancel(&requests[0]); /* the peer has sent nothing either */
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

  MPI_Allreduce(sums, (double*)sums + 16, kCount / 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

  MPI_Iallreduce(given, taken, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  accord_free(given);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

  accord_free(taken);
  accord_free(sums);
  MPI_Finalize();
  return 0;
}
