/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A shim that counts two functions and forwards them: what the preload layer is tested with.
 * toy_count is reached through dlopen of this file.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

#include "preload/shim_abi.h"

static int (*real_send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
static int (*real_allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
static int sends;
static int allreduces;

static int toy_send(const void* buffer, int count, MPI_Datatype type, int dst, int tag,
                    MPI_Comm comm) {
  ++sends;
  return real_send(buffer, count, type, dst, tag, comm);
}

static int toy_allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
  ++allreduces;
  return real_allreduce(send, receive, count, type, op, comm);
}

#if defined(OPEN_MPI)
#define HAS_LARGE_COUNTS 0
#else
#define HAS_LARGE_COUNTS 1
static int (*real_send_c)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
static int (*real_allreduce_c)(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);

static int toy_send_c(const void* buffer, MPI_Count count, MPI_Datatype type, int dst, int tag,
                      MPI_Comm comm) {
  ++sends;
  return real_send_c(buffer, count, type, dst, tag, comm);
}

static int toy_allreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return real_allreduce_c(send, receive, count, type, op, comm);
}
#endif

/* The MPI may not have it; the shim answers all the same. */
static int toy_query(void) { return 4711; }

/* Calls of "MPI_Send" or "MPI_Allreduce", large-count forms included. */
int toy_count(const char* function) {
  return strcmp(function, "MPI_Send") == 0 ? sends : allreduces;
}

int accord_shim_open(void* libmpi_handle) {
  *(void**)&real_send = dlsym(libmpi_handle, "PMPI_Send");
  *(void**)&real_allreduce = dlsym(libmpi_handle, "PMPI_Allreduce");
#if HAS_LARGE_COUNTS
  *(void**)&real_send_c = dlsym(libmpi_handle, "PMPI_Send_c");
  *(void**)&real_allreduce_c = dlsym(libmpi_handle, "PMPI_Allreduce_c");
#endif
  return real_send != NULL && real_allreduce != NULL ? 0 : 7;
}

const AccordShimEntry* accord_shim_entries(size_t* count) {
  static const AccordShimEntry entries[] = {
    {"MPI_Send", (void*)toy_send},
    {"MPI_Allreduce", (void*)toy_allreduce},
    {"MPIX_Query_hip_support", (void*)toy_query},
#if HAS_LARGE_COUNTS
    {"MPI_Send_c", (void*)toy_send_c},
    {"MPI_Allreduce_c", (void*)toy_allreduce_c},
#endif
  };
  *count = sizeof entries / sizeof entries[0];
  return entries;
}
