// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The partitioned collectives of accord/partitioned.h, which no host MPI has. Carried where Accord
// carries partitioned requests.
#pragma once

#include <mpi.h>

namespace accord::shim {

int MPIX_Pallgather_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                         MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                         MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Pallgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                          const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request* request);
int MPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request);
int MPIX_Palltoall_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                        MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Palltoallv_init(const void* sendbuf, int partitions, const int sendcounts[],
                         const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                         const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Palltoallw_init(const void* sendbuf, int partitions, const int sendcounts[],
                         const int sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
                         const int recvcounts[], const int rdispls[],
                         const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                         MPI_Request* request);
int MPIX_Pbcast_init(void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root,
                     MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Pexscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request);
int MPIX_Pgather_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                      MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request);
int MPIX_Pgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                       MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                       const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
                       MPI_Info info, MPI_Request* request);
int MPIX_Preduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request);
int MPIX_Preduce_scatter_init(const void* sendbuf, void* recvbuf, int partitions,
                              const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Preduce_scatter_block_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm, MPI_Info info, MPI_Request* request);
int MPIX_Pscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                    MPI_Request* request);
int MPIX_Pscatter_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request);
int MPIX_Pscatterv_init(const void* sendbuf, int partitions, const int sendcounts[],
                        const int displs[], MPI_Datatype sendtype, void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                        MPI_Info info, MPI_Request* request);
int MPIX_Pneighbor_allgather_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                  MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request);
int MPIX_Pneighbor_allgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                   MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                                   const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                   MPI_Info info, MPI_Request* request);
int MPIX_Pneighbor_alltoall_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                 MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                 MPI_Request* request);
int MPIX_Pneighbor_alltoallv_init(const void* sendbuf, int partitions, const int sendcounts[],
                                  const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                                  const int recvcounts[], const int rdispls[],
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request);
int MPIX_Pneighbor_alltoallw_init(const void* sendbuf, int partitions, const int sendcounts[],
                                  const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                  void* recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                                  const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request);

}  // namespace accord::shim
