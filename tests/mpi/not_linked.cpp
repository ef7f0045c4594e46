// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A program that knows nothing of Accord: no symbol of it is named here, and it is not linked.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ones = 1;
  MPI_Allreduce(MPI_IN_PLACE, &ones, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Finalize();
  return ones == size ? 0 : 1;
}
