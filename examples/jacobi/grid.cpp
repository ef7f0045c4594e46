// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "grid.h"

namespace jacobi {
namespace {

constexpr int kWidthMax = 1024;

int width_of(const Shape& shape) { return std::min(shape.columns, kWidthMax); }

// Row where the slab of `rank` begins; slabs differ by a row at most.
int first_row_of(const Shape& whole, int rank, int ranks) {
  return static_cast<int>(static_cast<long long>(whole.rows) * rank / ranks);
}

// Uneven, so that a border of another sweep, or from another place, shows in the result.
float initial(int row, int column) {
  return static_cast<float>(((row + 3) * 37 + (column + 5) * 101) % 257);
}

}  // namespace

Grid::Grid(const Shape& whole_grid, int rank, int ranks)
    : whole(whole_grid),
      first_row(first_row_of(whole, rank, ranks)),
      above(rank > 0 ? rank - 1 : MPI_PROC_NULL),
      below(rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL),
      shape{first_row_of(whole, rank + 1, ranks) - first_row, whole.columns},
      width(width_of(whole)),
      planes{app::Array<float>(shape.points()), app::Array<float>(shape.points())} {}

std::vector<float> initial_plane(const Shape& shape, int first_row) {
  std::vector<float> plane(shape.points());
  for (int row = -1; row <= shape.rows; ++row)
    for (int column = -kMargin; column < shape.columns + kMargin; ++column)
      plane[static_cast<std::size_t>(shape.at(row) + column)] = initial(first_row + row, column);
  return plane;
}

bool is_possible(const Shape& whole, int ranks) {
  constexpr long long kPointsMax = 1LL << 30;
  return whole.rows >= ranks && whole.columns >= 4 && whole.columns % 4 == 0 &&
         whole.columns % width_of(whole) == 0 &&
         static_cast<long long>(whole.rows + 2) * whole.pitch() <= kPointsMax;
}

}  // namespace jacobi
