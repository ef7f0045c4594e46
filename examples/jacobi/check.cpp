// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "check.h"

#include <cmath>
#include <utility>

namespace jacobi {

Result serial(const Grid& grid, int sweeps, int every) {
  const Shape& whole = grid.whole;
  std::vector<float> from = initial_plane(whole, 0);
  std::vector<float> to = from;
  std::vector<float> residuals;
  const auto pitch = static_cast<std::size_t>(whole.pitch());
  for (int sweep = 0; sweep < sweeps; ++sweep, std::swap(from, to)) {
    float residual = 0;
    for (int row = 0; row < whole.rows; ++row) {
      const auto first = static_cast<std::size_t>(whole.at(row));
      for (std::size_t i = first; i < first + static_cast<std::size_t>(whole.columns); ++i) {
        to[i] = (from[i - pitch] + from[i - 1] + from[i + 1] + from[i + pitch]) * 0.25f;
        residual = std::max(residual, std::fabs(to[i] - from[i]));
      }
    }
    if (every > 0 && (sweep + 1) % every == 0) residuals.push_back(residual);
  }
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(pitch) * grid.first_row;
  return {{begin, begin + static_cast<std::ptrdiff_t>(grid.shape.points())}, residuals};
}

int sweeps_to_check(const Shape& whole, int sweeps) {
  constexpr double kPoints = 3e8;
  const double most = kPoints / static_cast<double>(whole.points());
  return most < 1 ? 1 : static_cast<int>(std::min<double>(sweeps, most));
}

namespace {

int count_differences(const std::vector<float>& got, const std::vector<float>& wanted) {
  if (got.size() != wanted.size()) return static_cast<int>(std::max(got.size(), wanted.size()));
  int found = 0;
  for (std::size_t i = 0; i < got.size(); ++i) found += got[i] != wanted[i];
  return found;
}

}  // namespace

int differences(const Result& got, const Result& wanted) {
  return count_differences(got.plane, wanted.plane) +
         count_differences(got.residuals, wanted.residuals);
}

}  // namespace jacobi
