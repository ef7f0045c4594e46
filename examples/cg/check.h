// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether a solution is right, and whether it was reached as it should be: the iteration corrects
// many mistakes by taking longer.
#pragma once

#include <mpi.h>

#include <array>
#include <cmath>
#include <vector>

#include "../common/numbers.h"
#include "../common/report.h"
#include "solver.h"

namespace cg {

// The solution that is sought: known numbers at all points.
inline double solution_at(const app::Triple& size, int x, int y, int z) {
  const bool is_inside = x >= 0 && x < size[0] && y >= 0 && y < size[1] && z >= 0 && z < size[2];
  return is_inside ? app::number_of_point(size, x, y, z) : 0;
}

// What it is the solution for. Computed from its definition, without any message.
inline std::vector<double> right_hand_side(const app::Grid& grid) {
  std::vector<double> b(grid.layout().count(), 0.0);
  grid.for_points([&](std::size_t at, int x, int y, int z) {
    const auto u = [&](int dx, int dy, int dz) {
      return solution_at(grid.size(), x + dx, y + dy, z + dz);
    };
    b[at] = 6 * u(0, 0, 0) - u(-1, 0, 0) - u(1, 0, 0) - u(0, -1, 0) - u(0, 1, 0) - u(0, 0, -1) -
            u(0, 0, 1);
  });
  return b;
}

// |x - solution| / |solution|
inline double relative_error(const app::Grid& grid, const std::vector<double>& x) {
  std::array<double, 2> squares{};
  grid.for_points([&](std::size_t at, int px, int py, int pz) {
    const double wanted = solution_at(grid.size(), px, py, pz);
    squares[0] += (x[at] - wanted) * (x[at] - wanted);
    squares[1] += wanted * wanted;
  });
  MPI_Allreduce(MPI_IN_PLACE, squares.data(), 2, MPI_DOUBLE, MPI_SUM, grid.comm());
  return std::sqrt(squares[0] / squares[1]);
}

// The largest eigenvalue of the matrix by the smallest: an error is at most so many times as large
// as its residual.
inline double condition(const app::Triple& size) {
  double least = 0;
  double most = 0;
  for (const int n : size) {
    const double half_angle = std::acos(-1.0) / 2 / (n + 1);
    least += 4 * std::pow(std::sin(half_angle), 2);
    most += 4 * std::pow(std::cos(half_angle), 2);
  }
  return most / least;
}

constexpr std::size_t kSerialPoints = 32768;
constexpr int kSerialIterations = 8;
constexpr double kSerialAllowed = 1e-11;

// What the first iterations give on one rank, with its scalars on the CPU.
inline std::vector<double> serial_iterations(const app::Triple& size) {
  const app::Layout layout{{size[0], size[1], size[2]}};
  const auto for_points = [&](const auto& body) {
    for (int x = 1; x <= size[0]; ++x)
      for (int y = 1; y <= size[1]; ++y)
        for (int z = 1; z <= size[2]; ++z) body(static_cast<std::size_t>(layout.at(x, y, z)));
  };
  const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for_points([&](std::size_t i) { sum += a[i] * b[i]; });
    return sum;
  };
  std::vector<double> x(layout.count(), 0.0);
  std::vector<double> q(x);
  std::vector<double> r = right_hand_side(app::Grid(MPI_COMM_SELF, size, false));
  std::vector<double> p = r;
  double square = dot(r, r);
  for (int i = 0; i < kSerialIterations && square > 0; ++i) {
    for_points(
        [&](std::size_t at) { q[at] = poisson(&p[at], layout.stride_x(), layout.stride_y()); });
    const double alpha = square / dot(p, q);
    for_points([&](std::size_t at) {
      x[at] += alpha * p[at];
      r[at] -= alpha * q[at];
    });
    const double next = dot(r, r);
    for_points([&](std::size_t at) { p[at] = r[at] + next / square * p[at]; });
    square = next;
  }
  return x;
}

inline bool is_checked_serially(const app::Triple& size) {
  return app::product(size) <= kSerialPoints;
}

// The largest difference to them; not for large grids, for which one rank takes too long.
inline double serial_error(const app::Grid& grid, Solver& solver) {
  const app::Triple& n = grid.size();
  solver.start(right_hand_side(grid));
  solver.solve(kSerialIterations);
  const std::vector<double> x = solver.read_solution();
  const std::vector<double> wanted = serial_iterations(n);
  const app::Layout all{{n[0], n[1], n[2]}};
  double worst = 0;
  grid.for_points([&](std::size_t at, int px, int py, int pz) {
    const double error =
        std::abs(x[at] - wanted[static_cast<std::size_t>(all.at(px + 1, py + 1, pz + 1))]);
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  });
  return app::largest(worst, grid.comm());
}

}  // namespace cg
