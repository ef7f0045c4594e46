/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Answers programs that ask at compile time whether the MPI takes device memory. The MPI itself
 * says no, or has no such header; with Accord before it the answer is yes. Give the folder of this
 * file before those of the MPI: mpicc -I$PREFIX/include/accord/aware. What is true of this run is
 * what MPIX_Query_cuda_support returns: 0 without Accord, or without a GPU.
 */
#ifndef ACCORD_AWARE_MPI_EXT_H
#define ACCORD_AWARE_MPI_EXT_H

#include <mpi.h>

/* #include_next is an extension, of which compilers warn outside of system headers. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#ifdef __has_include_next
#if __has_include_next(<mpi-ext.h>)
#include_next <mpi-ext.h>
#endif
#endif

#undef MPIX_CUDA_AWARE_SUPPORT
#define MPIX_CUDA_AWARE_SUPPORT 1
#undef MPIX_ROCM_AWARE_SUPPORT
#define MPIX_ROCM_AWARE_SUPPORT 1

#ifdef __cplusplus
extern "C" {
#endif

int MPIX_Query_cuda_support(void);
int MPIX_Query_rocm_support(void);

#ifdef __cplusplus
}
#endif

#endif
