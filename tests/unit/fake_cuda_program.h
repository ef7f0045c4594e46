// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What fake_cuda_program.cpp has of the functions that Accord calls.
#pragma once

#include "device/cuda/driver.h"

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the driver's names
accord::device::cuda::Result cuDevicePrimaryCtxSetFlags_v2(accord::device::cuda::Device, unsigned);
accord::device::cuda::Result cuCtxGetFlags(unsigned*);
accord::device::cuda::Result cuCtxSetFlags(unsigned);
accord::device::cuda::Result cuPointerSetAttribute(const void*,
                                                   accord::device::cuda::PointerAttribute,
                                                   accord::device::cuda::DevicePointer);
// NOLINTEND
}
