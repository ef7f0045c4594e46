// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dots.h"

namespace cg {

constexpr double kTolerance = 1e-10;  // of the residual, against the right-hand side

struct Solution {
  int iterations = 0;
  bool converged = false;
};

// Solves A x = b for Poisson's matrix by conjugate gradients. Scalars stay on the device: the CPU
// reads the residual only each kEvery iterations.
class Solver {
 public:
  static constexpr int kEvery = 10;

  // Collective.
  Solver(const app::Grid& grid, const std::string& exchange, const std::string& dots)
      : layout_(grid.layout()),
        interior_(app::interior(grid.mine())),
        shell_(app::shell(grid.mine())),
        zeros_(layout_.count(), 0.0),
        halo_(app::make_halo(exchange, grid, true, border_stream_, time_)),
        dots_(make_dots(dots, grid, border_stream_, time_)) {
    all_.add({1, 1, 1}, grid.mine());
  }

  // Begins anew, from zeros.
  void start(const std::vector<double>& b) {
    x_.write(zeros_);
    b_.write(b);
    r_.write(b);
    p_.write(b);
    dots_->dot(b_, b_, square_[0]);
    border_stream_.synchronise();
    enough_ = square_[0].read() * kTolerance * kTolerance;
  }

  Solution solve(int most_iterations) {
    Solution solution;
    while (!solution.converged && solution.iterations < most_iterations) {
      iterate(square_[solution.iterations % 2], square_[(solution.iterations + 1) % 2]);
      ++solution.iterations;
      if (solution.iterations % kEvery == 0) {
        border_stream_.synchronise();
        solution.converged = square_[solution.iterations % 2].read() <= enough_;
      }
    }
    border_stream_.synchronise();
    return solution;
  }

  std::vector<double> read_solution() const { return x_.read(); }

  // |b - A x| / |b|, computed anew.
  double true_residual() {
    multiply(x_);
    app::Kernel kernel(border_stream_);
    kernel.run(all_.count(),
               Subtract{kernel.writes(r_), kernel.reads(b_), kernel.reads(q_), all_, layout_});
    dots_->dot(r_, r_, square_[0]);
    dots_->dot(b_, b_, square_[1]);
    border_stream_.synchronise();
    return std::sqrt(square_[0].read() / square_[1].read());
  }

  double seconds_in_mpi() const { return time_.seconds(); }

 private:
  // `square` is r . r before, and `next` after it.
  void iterate(const Scalar& square, const Scalar& next) {
    multiply(p_);
    dots_->dot(p_, q_, curvature_);
    add(x_, p_, 1, square);
    add(r_, q_, -1, square);
    dots_->dot(r_, r_, next);
    app::Kernel kernel(border_stream_);
    kernel.run(all_.count(), Turn{kernel.writes(p_), kernel.reads(r_), kernel.reads(next.array()),
                                  kernel.reads(square.array()), all_, layout_});
  }

  // q = A vector. The interior is computed while borders are under way to the neighbours.
  void multiply(const app::Array<double>& vector) {
    halo_->start(vector);
    border_stream_.synchronise();  // the other stream reads the vector, too
    compute(interior_, vector, interior_stream_);
    halo_->send();
    halo_->finish(vector);
    compute(shell_, vector, border_stream_);
    interior_stream_.synchronise();
  }
  void compute(const app::Boxes& boxes, const app::Array<double>& vector, app::Stream& stream) {
    app::Kernel kernel(stream);
    kernel.run(boxes.count(), Multiply{kernel.reads(vector), kernel.writes(q_), boxes, layout_});
  }

  // to += sign * square / curvature * from
  void add(const app::Array<double>& to, const app::Array<double>& from, double sign,
           const Scalar& square) {
    app::Kernel kernel(border_stream_);
    kernel.run(all_.count(),
               AddScaled{kernel.writes(to), kernel.reads(from), sign, kernel.reads(square.array()),
                         kernel.reads(curvature_.array()), all_, layout_});
  }

  app::Stream border_stream_, interior_stream_;
  app::MpiTime time_;
  app::Layout layout_;
  app::Boxes all_, interior_, shell_;
  std::vector<double> zeros_;
  double enough_ = 0;  // r . r of a solution
  // Ghosts beyond the end of the grid are 0, and no kernel writes them.
  app::Array<double> x_{zeros_}, b_{zeros_}, r_{zeros_}, p_{zeros_}, q_{zeros_};
  Scalar curvature_;  // p . A p
  Scalar square_[2];  // r . r of even and odd iterations
  std::unique_ptr<app::Halo> halo_;
  std::unique_ptr<Dots> dots_;
};

}  // namespace cg
