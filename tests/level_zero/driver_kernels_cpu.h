// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <cstddef>
#include <string_view>

namespace accord::test::level_zero {

// One work-item of `count` of a kernel.
using KernelOnCpu = void(const void* argument, std::size_t id, std::size_t count);

// Null: there is none of that name.
KernelOnCpu* kernel_on_cpu(std::string_view name);

}  // namespace accord::test::level_zero
