// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <string_view>

#include "device/reduce_functions.h"
#include "library.h"

namespace accord::test::hip {

// One of the kernels of launched_inbox*.clcpp.
struct InboxKernel {
  bool sends = false;
  device::Element element = device::Element::none;
  device::ReduceOp op = device::ReduceOp::none;
};

bool find_inbox_kernel(std::string_view name, InboxKernel& found);
// With the state's mutex held.
Result launch_inbox(const InboxKernel& kernel, void* parameters, device::cuda::Stream stream);

}  // namespace accord::test::hip
