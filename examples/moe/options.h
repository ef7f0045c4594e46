// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <string>
#include <vector>

#include "layer.h"

namespace moe {

struct Options {
  std::vector<Problem> problems;
  int repeats = 20;
  std::string memory = "auto";
};

extern const char* const kHelp;

// Throws std::runtime_error that says which word is wrong.
Options read_options(int argc, char** argv, int ranks);

}  // namespace moe
