// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions by the CPU. Called by host.cpp, and by the tests' fake driver.
#pragma once

#include "device/reduction.h"

namespace accord::device {

// `reduction` has passed check_reduction, and the CPU can touch all its addresses.
void reduce_on_host(const Reduction& reduction);

}  // namespace accord::device
