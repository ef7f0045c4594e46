// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One step of a stencil of 27 points, and the same on the ranks of a grid.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../common/device.h"
#include "../common/grid.h"
#include "../common/halo.h"

namespace stencil3d {

// A point becomes the mean of its 3 x 3 x 3 neighbourhood with these weights, whose sum is 1. They
// are no product of weights along each axis, so a mistake at a corner is not made good elsewhere.
struct Weights {
  double centre = 0.4;
  double face = 0.06;      // 6
  double edge = 0.015;     // 12
  double corner = 0.0075;  // 8
};

// `at` is a point, and strides are distances in memory to its neighbours along x and y.
ON_BOTH inline double mean(const double* at, int sx, int sy, const Weights& weights) {
  const double faces = at[-sx] + at[sx] + at[-sy] + at[sy] + at[-1] + at[1];
  const double edges = at[-sx - sy] + at[-sx + sy] + at[sx - sy] + at[sx + sy] + at[-sx - 1] +
                       at[-sx + 1] + at[sx - 1] + at[sx + 1] + at[-sy - 1] + at[-sy + 1] +
                       at[sy - 1] + at[sy + 1];
  const double corners = at[-sx - sy - 1] + at[-sx - sy + 1] + at[-sx + sy - 1] + at[-sx + sy + 1] +
                         at[sx - sy - 1] + at[sx - sy + 1] + at[sx + sy - 1] + at[sx + sy + 1];
  return weights.centre * at[0] + weights.face * faces + weights.edge * edges +
         weights.corner * corners;
}

// A kernel: the step at the points of some boxes.
struct Step {
  const double* from;
  double* to;
  app::Boxes boxes;
  app::Layout layout;
  Weights weights;
  ON_DEVICE void operator()(int i) const {
    const int at = boxes.place(layout, i);
    to[at] = mean(from + at, layout.stride_x(), layout.stride_y(), weights);
  }
};

class Stencil {
 public:
  // Collective.
  Stencil(const app::Grid& grid, const std::string& exchange)
      : layout_(grid.layout()),
        interior_(app::interior(grid.mine())),
        shell_(app::shell(grid.mine())),
        now_(std::make_unique<app::Array<double>>(layout_.count())),
        next_(std::make_unique<app::Array<double>>(layout_.count())),
        halo_(app::make_halo(exchange, grid, false, border_stream_, time_)) {}

  void write(const std::vector<double>& field) { now_->write(field); }
  std::vector<double> read() const { return now_->read(); }
  double seconds_in_mpi() const { return time_.seconds(); }

  // The interior is computed while borders are under way to the neighbours.
  void step() {
    halo_->start(*now_);
    compute(interior_, interior_stream_);
    halo_->send();
    halo_->finish(*now_);
    compute(shell_, border_stream_);
    border_stream_.synchronise();
    interior_stream_.synchronise();
    std::swap(now_, next_);
  }

 private:
  void compute(const app::Boxes& boxes, app::Stream& stream) {
    app::Kernel kernel(stream);
    kernel.run(boxes.count(),
               Step{kernel.reads(*now_), kernel.writes(*next_), boxes, layout_, Weights{}});
  }

  app::Stream border_stream_, interior_stream_;
  app::MpiTime time_;
  app::Layout layout_;
  app::Boxes interior_, shell_;
  std::unique_ptr<app::Array<double>> now_, next_;
  std::unique_ptr<app::Halo> halo_;
};

}  // namespace stencil3d
