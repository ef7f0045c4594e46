// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions by kernels of our own (level_zero/reduce_kernels.clcpp). Called by
// level_zero/runtime.cpp only.
#pragma once

#include "device/level_zero/copy.h"

namespace accord::device::level_zero {

// What a lane of the device's compute engines has to do for the reduction, which is not empty:
// nothing where the driver has refused this kernel, and the CPU has done it.
// `index` is the device's number in the runtime.
Status make_reduction(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                      const Reduction& reduction, Work& work);

}  // namespace accord::device::level_zero
