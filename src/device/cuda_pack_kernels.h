// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What cuda_pack.cpp and the kernels of cuda_pack_kernels.cu agree on, besides pack.h.
#pragma once

namespace accord::device::cuda {

constexpr unsigned kPackThreads = 256;  // of a block

// Words of a thread that are on their way at once: rows of a few bytes leave most of each memory
// transaction unused, and host memory is a microsecond away.
constexpr unsigned kPackLoadsInFlight = 4;

}  // namespace accord::device::cuda
