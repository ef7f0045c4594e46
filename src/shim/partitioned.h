// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned communication (MPI 4.0, chapter 4) and what kernels need of it
// (accord/partitioned.h). Either Accord carries all partitioned requests of a job or the host MPI
// does: the two ends of one must agree, and neither knows where the other's buffer is.
#pragma once

#include <mpi.h>

#include "accord/partitioned_layout.h"
#include "shim/shim.h"

namespace accord::partitioned {
class PartitionedTable;
struct PartitionedCall;
}  // namespace accord::partitioned

namespace accord::shim {

// Where Accord carries them. Collective over MPI_COMM_WORLD.
void open_partitioned();
void close_partitioned();

// The requests of this process; null where Accord carries none.
partitioned::PartitionedTable* partitioned_table();
// What kernels are to do for a request, as the setting and its info say.
Status read_info(MPI_Info info, partitioned::PartitionedCall& call);

#ifdef ACCORD_HAS_Psend_init
int Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
               int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request);
int Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source,
               int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request);
int Pready(int partition, MPI_Request request);
int Pready_range(int low, int high, MPI_Request request);
int Pready_listed(int length, const int partitions[], MPI_Request request);
// Whether the list is const depends on the MPI.
template <class Number>
int Pready_list(int length, Number partitions[], MPI_Request request) {
  return Pready_listed(length, partitions, request);
}
int Parrived(MPI_Request request, int partition, int* flag);
#endif

int MPIX_Pbuf_prepare(MPI_Request request);
int MPIX_Pbuf_prepare_all(int count, MPI_Request requests[]);
int MPIX_Prequest_create(accord_prequest** preq, MPI_Request request);
int MPIX_Prequest_free(accord_prequest** preq);

}  // namespace accord::shim
