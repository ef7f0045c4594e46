// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// HIP's own functions, and CUDA's table made of them. Called by hip/driver.cpp, which finds them.
#pragma once

#include "device/cuda/driver.h"
#include "device/hip/driver.h"

namespace accord::device::hip {

using cuda::Device;
using cuda::PointerAttribute;
using cuda::Result;
using cuda::Stream;

// A twin has the type that the table gives it.
struct Functions {
#define HIP_TWIN(member, symbol, parameters) decltype(cuda::Driver::member) member = nullptr;
#define HIP_LIKE(member, symbol, parameters) Result(*member) parameters = nullptr;
#define HIP_OWN(member, symbol, parameters) Result(*member) parameters = nullptr;
#define HIP_TEXT(member, symbol) const char* (*member)(Result) = nullptr;
#include "device/hip/driver.def"
#undef HIP_TWIN
#undef HIP_LIKE
#undef HIP_OWN
#undef HIP_TEXT
};

// Those of this process; written once, before the table is made.
Functions& functions() noexcept;

// The table, over functions(). What HIP lacks says that it is not supported.
cuda::Driver make_driver();

}  // namespace accord::device::hip
