// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Start and end of MPI, and what a program may ask about accelerators.
#pragma once

#include <mpi.h>

#include "host_mpi.h"

namespace accord::shim {

int Init(int* argc, char*** argv);
int Init_thread(int* argc, char*** argv, int required, int* provided);
int Query_thread(int* provided);
int Finalize();
#ifdef ACCORD_HAS_Session_init
int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
int Session_finalize(MPI_Session* session);
int Session_get_info(MPI_Session session, MPI_Info* info);
#endif
int Comm_get_info(MPI_Comm comm, MPI_Info* info);
int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request);
#ifdef ACCORD_HAS_Comm_idup_with_info
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request);
#endif

// Whether MPI calls accept this vendor's device memory, with Accord: 1 or 0.
int MPIX_Query_cuda_support();
int MPIX_Query_hip_support();
int MPIX_Query_rocm_support();
int MPIX_Query_ze_support();
int MPIX_GPU_query_support(int gpu_type, int* is_supported);

}  // namespace accord::shim
