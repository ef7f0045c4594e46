// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of partitions by kernels of our own (cuda/partition_kernels.cu). Called by
// cuda/runtime.cpp only.
#pragma once

#include <memory>

#include "device/cuda/driver.h"
#include "device/partition_reducer.h"

namespace accord::device::cuda {

Status make_partition_reducer(const Driver& driver, Device device,
                              const PartitionReduction& reduction, std::uint32_t* arrived,
                              std::unique_ptr<PartitionReducer>& reducer);

}  // namespace accord::device::cuda
