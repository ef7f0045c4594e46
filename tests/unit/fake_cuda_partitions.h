// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of partitioned reductions over the fake driver: one that finds nothing to do leaves
// at once, whatever its patience.
#pragma once

#include "device/cuda/partition_kernels.h"
#include "fake_cuda_kernels.h"

namespace accord::device::cuda {

// Whether all that the kernel touches is where it may.
bool can_run(const PartitionSchedule& schedule, Element element);
void run(const FunctionHandle& kernel, const PartitionSchedule& schedule);
void run(const PartitionMarks& marks);

}  // namespace accord::device::cuda
