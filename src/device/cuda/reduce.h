// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions by kernels of our own (cuda/kernels.cu), which the library carries where it was built
// with nvcc. Loaded into a context when it first needs them. Called by cuda/runtime.cpp only.
#pragma once

#include "device/cuda/driver.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {

// Whether the kernels are in the library and the driver takes them: found out by loading them into
// a context that exists, so the answer is no as long as there is none.
bool can_reduce(const Driver& driver);

Status reduce_begin(const Driver& driver, Device device, const Reduction& reduction,
                    CopyTicket& ticket);

}  // namespace accord::device::cuda
