// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Says why a program ends whose CPU has touched device memory of the host runtime: a segmentation
// fault alone does not tell it from any other mistake.
#pragma once

#include <cstddef>
#include <cstdint>

namespace accord::device {

// From now on a fault at one of these addresses writes a line to standard error. What the program
// or its libraries do about SIGSEGV happens all the same, after it. Called once.
void explain_faults(std::uintptr_t start, std::size_t size_bytes) noexcept;

}  // namespace accord::device
