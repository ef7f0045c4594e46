// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies that follow a layout by kernels of our own (cuda/pack_kernels.cu), which the library
// carries where it was built with nvcc. Where no kernel pays, or none can address the memory, they
// go as copies of rows. Called by cuda/runtime.cpp only.
#pragma once

#include "device/cuda/driver.h"
#include "device/cuda/modules.h"
#include "device/layout_copy.h"

namespace accord::device::cuda {

Status copy_batch(const Driver& driver, Device device, const CopyBatch& batch);
Status batch_begin(const Driver& driver, Device device, const CopyBatch& batch, CopyTicket& ticket);

// The kernels of cuda/pack_kernels.cu.
Kernels& pack_kernels();

// How many copies kernels have done, for tests.
std::uint64_t pack_launches() noexcept;

}  // namespace accord::device::cuda
