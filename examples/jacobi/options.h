// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <string>
#include <vector>

#include "grid.h"

namespace jacobi {

struct Options {
  std::vector<Shape> grids;
  std::vector<std::string> ways;  // none: all that there are
  int sweeps = 500;
  int residual = 10;  // every so many sweeps; 0 is never
  int repeats = 5;
  std::string memory = "auto";
};

extern const char* const kHelp;

// Throws std::runtime_error that says which word is wrong.
Options read_options(int argc, char** argv, int ranks);

}  // namespace jacobi
