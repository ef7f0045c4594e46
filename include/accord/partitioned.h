/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Partitioned communication that kernels take part in (C99): what a program calls on the host. Kernels include
 * accord/partitioned.cuh. The requests are those of MPI_Psend_init and MPI_Precv_init; docs/partitioned.md has a
 * complete example. All functions return MPI_SUCCESS or an MPI error code, raised on the request's communicator.
 */
#ifndef ACCORD_PARTITIONED_H
#define ACCORD_PARTITIONED_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A partitioned request as a kernel sees it: an address on the device, handed to a kernel by value. Null is none. */
struct accord_prequest;
typedef struct accord_prequest* MPIX_Prequest;
#define MPIX_PREQUEST_NULL ((MPIX_Prequest)0)

/* Of a sender: returns once the receiver has started the same round, so that nothing a kernel marks ready has to be
 * held. Of a receiver: once its sender has been told. Called by both, on a request that has been started and not
 * completed; optional. Waits for the other side. Errors: MPI_ERR_ARG where `request` is no partitioned one of Accord's, or not started. */
int MPIX_Pbuf_prepare(MPI_Request request);

/* The same of `count` requests, whatever order the other sides prepare theirs in. */
int MPIX_Pbuf_prepare_all(int count, MPI_Request requests[]);

/* Makes `request` usable by kernels on the device that its buffer is on, before or after MPI_Start; one a request.
 * Local. *preq serves all rounds of the request, until MPIX_Prequest_free. Errors: MPI_ERR_ARG as above or where
 * there is one already, MPI_ERR_BUFFER where the buffer is in host memory, MPI_ERR_NO_MEM. */
int MPIX_Prequest_create(MPIX_Prequest* preq, MPI_Request request);

/* Frees *preq and sets it to MPIX_PREQUEST_NULL. No kernel may use it any more, and its request must not be active.
 * MPI_Request_free of its request does the same. Local. Errors: MPI_ERR_ARG. */
int MPIX_Prequest_free(MPIX_Prequest* preq);

#ifdef __cplusplus
}
#endif
#endif
