// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether steps are right. Each check writes a field of its own first.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../common/numbers.h"
#include "../common/report.h"
#include "stencil.h"

namespace stencil3d {

constexpr int kCheckedSteps = 4;
constexpr double kAllowed = 1e-12;
constexpr std::size_t kSerialPoints = 32768;

inline std::vector<double> random_field(const app::Grid& grid) {
  std::vector<double> field(grid.layout().count());
  grid.for_points([&](std::size_t at, int x, int y, int z) {
    field[at] = app::number_of_point(grid.size(), x, y, z);
  });
  return field;
}

// A plane wave in a direction that is no axis. The stencil is symmetric, so a step multiplies the
// wave by a known factor, whatever its phase is.
class Wave {
 public:
  explicit Wave(const app::Triple& size) {
    const double full_turn = 2 * std::acos(-1.0);
    for (std::size_t axis = 0; axis < 3; ++axis)
      angle_[axis] = full_turn * static_cast<double>(axis + 1) / size[axis];
  }

  double at(int x, int y, int z) const {
    return std::cos(angle_[0] * x + angle_[1] * y + angle_[2] * z + 0.3);
  }
  double factor() const {
    const Weights weights;
    double factor = weights.centre;
    for (const app::Triple& d : app::directions(false)) {
      const int axes = std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]);
      const double weight = axes == 1 ? weights.face : axes == 2 ? weights.edge : weights.corner;
      factor += weight * std::cos(angle_[0] * d[0] + angle_[1] * d[1] + angle_[2] * d[2]);
    }
    return factor;
  }

 private:
  std::array<double, 3> angle_{};
};

// The largest difference of a rank's points from what they should be, over all ranks.
template <class Wanted>
double difference(const app::Grid& grid, const std::vector<double>& field, const Wanted& wanted) {
  double worst = 0;
  grid.for_points([&](std::size_t at, int x, int y, int z) {
    const double error = std::abs(field[at] - wanted(x, y, z));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  });
  return app::largest(worst, grid.comm());
}

inline double wave_error(const app::Grid& grid, Stencil& stencil) {
  const Wave wave(grid.size());
  std::vector<double> field(grid.layout().count());
  grid.for_points([&](std::size_t at, int x, int y, int z) { field[at] = wave.at(x, y, z); });
  stencil.write(field);
  for (int i = 0; i < kCheckedSteps; ++i) stencil.step();
  const double factor = std::pow(wave.factor(), kCheckedSteps);
  return difference(grid, stencil.read(),
                    [&](int x, int y, int z) { return factor * wave.at(x, y, z); });
}

// The same steps of the whole grid on this rank alone, without any message.
inline std::vector<double> serial_steps(const app::Triple& n) {
  const app::Layout layout{{n[0], n[1], n[2]}};
  std::vector<double> now(layout.count());
  std::vector<double> next(now.size());
  const auto place = [&](int x, int y, int z) {
    return static_cast<std::size_t>(layout.at(x, y, z));
  };
  const auto for_points = [&](int least, int beyond, const auto& body) {
    for (int x = least; x < n[0] + beyond; ++x)
      for (int y = least; y < n[1] + beyond; ++y)
        for (int z = least; z < n[2] + beyond; ++z) body(x, y, z);
  };
  const auto wrapped = [](int value, int size) { return (value + size - 1) % size + 1; };
  for_points(1, 1, [&](int x, int y, int z) {
    now[place(x, y, z)] = app::number_of_point(n, x - 1, y - 1, z - 1);
  });
  for (int i = 0; i < kCheckedSteps; ++i) {
    for_points(0, 2, [&](int x, int y, int z) {
      now[place(x, y, z)] = now[place(wrapped(x, n[0]), wrapped(y, n[1]), wrapped(z, n[2]))];
    });
    for_points(1, 1, [&](int x, int y, int z) {
      next[place(x, y, z)] =
          mean(&now[place(x, y, z)], layout.stride_x(), layout.stride_y(), Weights{});
    });
    std::swap(now, next);
  }
  return now;
}

inline double serial_error(const app::Grid& grid, Stencil& stencil) {
  const app::Triple& n = grid.size();
  if (app::product(n) > kSerialPoints) return 0;
  stencil.write(random_field(grid));
  for (int i = 0; i < kCheckedSteps; ++i) stencil.step();
  const std::vector<double> wanted = serial_steps(n);
  const app::Layout all{{n[0], n[1], n[2]}};
  return difference(grid, stencil.read(), [&](int x, int y, int z) {
    return wanted[static_cast<std::size_t>(all.at(x + 1, y + 1, z + 1))];
  });
}

}  // namespace stencil3d
