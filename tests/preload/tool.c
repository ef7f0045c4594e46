/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A PMPI tool: counts two functions, calls their profiling names. Preloaded before and behind
 * libaccord.
 */
#include <mpi.h>

int tool_sends;
int tool_allreduces;

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm) {
  ++tool_sends;
  return PMPI_Send(buffer, count, type, dst, tag, comm);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  ++tool_allreduces;
  return PMPI_Allreduce(send, receive, count, type, op, comm);
}
