// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What --plan FILE asks for: single points instead of whole operations, each with the algorithms to
// be measured beside the one that Accord would take. `accord tune` writes such files. Free of MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace accord::bench {

// A line `allreduce 65536 inbox node-two-shot`.
struct PlannedPoint {
  std::string operation;
  std::size_t size_bytes = 0;
  std::vector<std::string> algorithms;
};

// Throws std::runtime_error that names the line; `operations` are the names there are.
std::vector<PlannedPoint> read_plan(const std::string& path,
                                    const std::vector<std::string>& operations);

}  // namespace accord::bench
