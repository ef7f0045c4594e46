/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * MPI used as mpi4py does: from an object that a program without MPI opens in local scope, and with
 * weak references that tell whether this MPI has a function.
 */
#include <mpi.h>
#include <string.h>

#include "expectations.h"

#pragma weak MPI_Allreduce_c
int MPI_Allreduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
#pragma weak MPIX_Query_hip_support
int MPIX_Query_hip_support(void);
/* Intercepted for a future in which some MPI has it. */
#pragma weak MPI_Barrier_c
int MPI_Barrier_c(MPI_Comm);

int plugin_run(void) {
  const char* expected = getenv("LARGE_COUNTS");
  expect("MPI_Allreduce_c's presence", MPI_Allreduce_c != NULL,
         expected != NULL && strcmp(expected, "1") == 0);
  expect("MPI_Barrier_c's presence", MPI_Barrier_c != NULL, 0);
  expect("MPIX_Query_hip_support's presence", MPIX_Query_hip_support != NULL, 1);

  MPI_Init(NULL, NULL);
  int received = 0;
  MPI_Request request;
  MPI_Irecv(&received, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
  int value = 3;
  MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("the received value", received, 3);
  MPI_Allreduce(&value, &received, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  expect("the sum", received, 3);
  if (MPIX_Query_hip_support != NULL) {
    expect("the toy shim's answer", MPIX_Query_hip_support(), 4711);
  }
  expect_toy_counts();
  MPI_Finalize();
  return failures;
}
