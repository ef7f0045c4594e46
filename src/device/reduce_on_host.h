// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions by the CPU, for every runtime: the host runtime's, and those of others that no kernel
// does. Called by the tests' fake drivers, too.
#pragma once

#include "device/reduction.h"

namespace accord::device {

struct DirectUpdate;

// `reduction` has passed check_reduction, and the CPU can touch all its addresses.
void reduce_on_host(const Reduction& reduction);
void update_on_host(const DirectUpdate& update);

}  // namespace accord::device
