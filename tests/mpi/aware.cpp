// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Asks as programs do whether the MPI takes device memory: at compile time by mpi-ext.h, as
// Accord's stands before that of the MPI, and at run time. The header says yes on every machine;
// the function says what is true of this run.
#include <accord/accord.h>
#include <mpi-ext.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>

#if !defined(MPIX_CUDA_AWARE_SUPPORT) || !MPIX_CUDA_AWARE_SUPPORT
#error "mpi-ext.h is not Accord's"
#endif
#if !defined(MPIX_ROCM_AWARE_SUPPORT) || !MPIX_ROCM_AWARE_SUPPORT
#error "mpi-ext.h is not Accord's"
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* runtime = accord_runtime_name();
  const int cuda = std::strcmp(runtime, "cuda") == 0 ? 1 : 0;
  const int hip = std::strcmp(runtime, "hip") == 0 ? 1 : 0;
  int failures = 0;
  if (MPIX_Query_cuda_support() != cuda || MPIX_Query_rocm_support() != hip) {
    std::fprintf(stderr, "runtime %s, yet CUDA: %d, ROCm: %d\n", runtime, MPIX_Query_cuda_support(),
                 MPIX_Query_rocm_support());
    failures = 1;
  }
  MPI_Finalize();
  return failures;
}
