// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <vector>

#include "grid.h"

namespace jacobi {

struct Result {
  std::vector<float> plane;  // of this rank, the last
  std::vector<float> residuals;
};

// By this process alone, all of the grid.
Result serial(const Grid& grid, int sweeps, int every);

// So many sweeps of a grid one process makes in a second or so.
int sweeps_to_check(const Shape& whole, int sweeps);

// Points and residuals that differ in any bit.
int differences(const Result& got, const Result& wanted);

}  // namespace jacobi
