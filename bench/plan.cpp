// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace accord::bench {

std::vector<PlannedPoint> read_plan(const std::string& path,
                                    const std::vector<std::string>& operations) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("cannot read the plan {}", path));
  std::vector<PlannedPoint> points;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line);
    PlannedPoint point;
    if (!(words >> point.operation)) continue;
    const bool known = std::ranges::find(operations, point.operation) != operations.end();
    if (!known || !(words >> point.size_bytes) || point.size_bytes == 0)
      throw std::runtime_error(
          fmt::format("{}:{}: not an operation and a size in bytes: {}", path, number, line));
    for (std::string name; words >> name;) point.algorithms.push_back(name);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace accord::bench
