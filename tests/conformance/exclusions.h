// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Known defects of host MPIs (known_defects.cpp, by name and version): cases that hit one are
// skipped, with the reason counted. A defect of Accord is never listed here.
#pragma once

#include "run.h"

namespace accord::conformance {

// Throws Skip if this MPI cannot do `feature`. To be asked on all ranks, before any call of the
// case.
void require(const Run& run, const char* feature);

// Whether it can, for cases that have another way to go.
bool works(const Run& run, const char* feature);

}  // namespace accord::conformance
