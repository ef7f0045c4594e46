// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies that follow a layout by kernels of our own (level_zero/pack_kernels.clcpp). Where no
// kernel pays, or none can address the memory, they go as copies of rows. Called by
// level_zero/runtime.cpp only.
#pragma once

#include <cstdint>

#include "device/layout_copy.h"
#include "device/level_zero/copy.h"

namespace accord::device::level_zero {

// What a lane of the device's compute engines has to do for the batch; copies alone where none of
// it is for kernels. `index` is the device's number in the runtime.
Status make_batch(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                  const CopyBatch& batch, Work& work);

// How many copies kernels have done, for tests.
std::uint64_t pack_launches() noexcept;

}  // namespace accord::device::level_zero
