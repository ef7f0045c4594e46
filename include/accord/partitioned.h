/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Partitioned communication that kernels take part in (C99): what a program calls on the host.
 * Kernels include accord/partitioned.cuh. The requests are those of MPI_Psend_init and
 * MPI_Precv_init, and of the collectives below; docs/partitioned.md has a complete example. All
 * functions return MPI_SUCCESS or an MPI error code, raised on the request's communicator.
 */
#ifndef ACCORD_PARTITIONED_H
#define ACCORD_PARTITIONED_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A partitioned request as a kernel sees it: an address on the device, handed to a kernel by value.
 * Null is none. */
struct accord_prequest;
typedef struct accord_prequest* MPIX_Prequest;
#define MPIX_PREQUEST_NULL ((MPIX_Prequest)0)

/* Of a sender: returns once the receiver has started the same round, so that nothing a kernel marks
 * ready has to be held. Of a receiver: once its sender has been told. Of a collective: once all
 * ranks that this one exchanges data with have started the round. From the second such round on at
 * once: of a collective that kernels do within a node, since what they mark then need not be held,
 * and of what goes by messages between nodes, since it is packed meanwhile. Called by all of them,
 * on a request that has been started and not completed; optional. Waits for the other side. Errors:
 * MPI_ERR_ARG where `request` is no partitioned one of Accord's, or not started. */
int MPIX_Pbuf_prepare(MPI_Request request);

/* The same of `count` requests, whatever order the other sides prepare theirs in. */
int MPIX_Pbuf_prepare_all(int count, MPI_Request requests[]);

/* Makes `request` usable by kernels on the device that its buffer is on, before or after MPI_Start;
 * one a request. Local. *preq serves all rounds of the request, until MPIX_Prequest_free. Errors:
 * MPI_ERR_ARG as above or where there is one already, MPI_ERR_BUFFER where the buffer is in host
 * memory, MPI_ERR_NO_MEM. */
int MPIX_Prequest_create(MPIX_Prequest* preq, MPI_Request request);

/* Frees *preq and sets it to MPIX_PREQUEST_NULL. No kernel may use it any more, and its request
 * must not be active. MPI_Request_free of its request does the same. Local. Errors: MPI_ERR_ARG. */
int MPIX_Prequest_free(MPIX_Prequest* preq);

/* Partitioned collectives. A request of these does what the MPI function of that name does with
 * every count times `partitions`, and moves partition after partition as they become ready:
 * partition p is elements [p * count, (p + 1) * count) of each of the blocks that the counts speak
 * of (so of MPIX_Palltoall_init it is the p-th piece of what each rank gets). All counts are those
 * of one partition; displacements say where the whole blocks are, as in the MPI function. A rank
 * that gives data (of MPIX_Pbcast_init and MPIX_Pscatter[v]_init the root alone) marks each
 * partition once a round: MPI_Pready, _range, _list, or a kernel. A rank that gets data (of
 * MPIX_Preduce_init and MPIX_Pgather[v]_init the root alone) may ask for each: MPI_Parrived, or a
 * kernel. MPI_Start begins a round, which is complete (MPI_Wait, MPI_Test) once all partitions are
 * through here; buffers are the request's until then.
 *
 * `partitions` is the same on all ranks. Buffers may be in device or host memory, different ones on
 * each rank, and MPI_IN_PLACE stands where the MPI function takes it. Collective over `comm`, an
 * intracommunicator, in one order on all its ranks with the others of these functions; local
 * otherwise: nothing waits for another rank. `info`: the key "accord_marks", as of MPI_Psend_init.
 * Errors: those of the MPI function; MPI_ERR_ARG for partitions < 1; MPI_ERR_BUFFER where Accord
 * does not carry partitioned requests or not on this communicator. Ranks whose arguments do not fit
 * together get an error from the call that completes the request. */
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

#ifdef __cplusplus
}
#endif
#endif
