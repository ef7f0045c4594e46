// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A program's kernel that calls all of accord/partitioned.cuh: that it compiles for an AMD GPU,
// over HIP's own headers, is the test.
#include <hip/hip_runtime.h>

#include <accord/partitioned.cuh>
extern "C" __global__ void mark(MPIX_Prequest request, int* out) {
  out[0] = MPIX_Pready_thread(0, request);
  out[1] = MPIX_Pready_warp(1, request);
  out[2] = MPIX_Pready_block(2, request);
  out[3] = MPIX_Pready_range(3, 5, request);
  out[4] = MPIX_Parrived(0, request);
  const int some[2] = {1, 2};
  out[5] = MPIX_Parrived_any(2, some, request);
  out[6] = static_cast<int>(MPIX_Pround(request));
}
