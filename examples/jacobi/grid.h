// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A grid of rows by columns, cut into a slab of rows a rank, and the kernels of a sweep.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../common/launch.h"

namespace jacobi {

// A slab: its rows, one above and one below, and columns that never change on both sides, so wide
// that the rows begin where devices like to load from.
constexpr int kMargin = 4;
struct Shape {
  int rows = 0;
  int columns = 0;

  ON_BOTH int pitch() const { return columns + 2 * kMargin; }
  // The first point that changes in row `row`; the border above is -1, that below is `rows`.
  ON_BOTH int at(int row) const { return (row + 1) * pitch() + kMargin; }
  std::size_t points() const {
    return static_cast<std::size_t>(rows + 2) * static_cast<std::size_t>(columns + 2 * kMargin);
  }
};

// All threads of the block call it; the first one gets the largest of their numbers, from 0 on.
ON_DEVICE inline float largest_of_block(Block block, float mine) {
#if ACCORD_PARTITIONED_GPU
  __shared__ float all[kThreads];
  all[block.thread] = mine;
  for (int half = block.threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (block.thread < half) all[block.thread] = fmaxf(all[block.thread], all[block.thread + half]);
  }
  return all[0];
#else
  static_cast<void>(block);
  return mine;
#endif
}

// A block makes `width` points of a row. Those of the first and last row come first, since other
// ranks wait for them. Without requests it is an ordinary kernel.
struct Sweep {
  const float* from;
  float* to;
  Shape shape;
  int width;
  int first;       // block of the sweep that this kernel begins with
  float* changes;  // by how much a point of each block changes at most; null where nobody asks
  MPIX_Prequest up = MPIX_PREQUEST_NULL;
  MPIX_Prequest down = MPIX_PREQUEST_NULL;

  ON_DEVICE void operator()(Block block) const {
    const int number = first + block.number;
    const int row = row_of(number / (shape.columns / width));
    const int piece = number % (shape.columns / width);
    const float change = make(block, shape.at(row) + piece * width);
    if (row == 0 && up != MPIX_PREQUEST_NULL) MPIX_Pready_block(piece, up);
    if (row == shape.rows - 1 && down != MPIX_PREQUEST_NULL) MPIX_Pready_block(piece, down);
    if (changes != nullptr) tell(block, number, change);
  }
  ON_DEVICE int row_of(int turn) const {
    return turn == 0 ? 0 : turn == 1 ? shape.rows - 1 : turn - 1;
  }
  ON_DEVICE float make(Block block, int first_point) const {
    View<const float> above(from + first_point - shape.pitch(), width);
    View<const float> row(from + first_point - 1, width + 2);
    View<const float> below(from + first_point + shape.pitch(), width);
    View<float> made(to + first_point, width);
    float largest = 0;
    for (int i = block.thread; i < width; i += block.threads) {
      const float value = (above[i] + row[i] + row[i + 2] + below[i]) * 0.25f;
      made[i] = value;
      if (changes == nullptr) continue;
      const float change = value < row[i + 1] ? row[i + 1] - value : value - row[i + 1];
      if (change > largest) largest = change;
    }
    return largest;
  }
  ON_DEVICE void tell(Block block, int number, float change) const {
    const float largest = largest_of_block(block, change);
    if (block.thread != 0) return;
    View<float> told(changes + number, 1);
    told[0] = largest;
  }
};

// One block finds the largest of some numbers, from 0 on.
struct Largest {
  const float* numbers;
  int count;
  float* result;

  ON_DEVICE void operator()(Block block) const {
    View<const float> all(numbers, count);
    float mine = 0;
    for (int i = block.thread; i < count; i += block.threads)
      if (all[i] > mine) mine = all[i];
    const float largest = largest_of_block(block, mine);
    if (block.thread != 0) return;
    View<float> told(result, 1);
    told[0] = largest;
  }
};

// What a rank has. A sweep reads one of two planes and makes the other.
struct Grid {
  Grid(const Shape& whole_grid, int rank, int ranks);

  Shape whole;
  int first_row;  // of this rank
  int above;      // rank
  int below;
  Shape shape;
  int width;  // of what a block makes, and of a partition
  app::Array<float> planes[2];

  int pieces() const { return shape.columns / width; }
  int blocks() const { return shape.rows * pieces(); }
  int border_blocks() const { return std::min(shape.rows, 2) * pieces(); }
  float* read_by(int sweep) const { return planes[sweep % 2].data(); }
  float* made_by(int sweep) const { return planes[(sweep + 1) % 2].data(); }
  Sweep kernel(int sweep, int first, float* changes) const {
    return {read_by(sweep), made_by(sweep), shape, width, first, changes};
  }
};

// What a slab of this shape holds at first, with `first_row` of the whole grid on top.
std::vector<float> initial_plane(const Shape& shape, int first_row);

// Whether Grid takes it.
bool is_possible(const Shape& whole, int ranks);

}  // namespace jacobi
