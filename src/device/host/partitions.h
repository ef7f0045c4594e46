// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of partitions on the embedded host runtime: a thread stands for the kernel. Called by
// host/runtime.cpp only.
#pragma once

#include <memory>
#include <vector>

#include "device/host/arena.h"
#include "device/partition_reducer.h"

namespace accord::device {

// `reduction` by addresses that the CPU can touch; the owners keep them so.
std::unique_ptr<PartitionReducer> make_host_partition_reducer(
    const PartitionReduction& reduction, std::uint32_t* arrived,
    std::vector<HostAllocationRef> owners);

}  // namespace accord::device
