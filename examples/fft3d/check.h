// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether a transform is right.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

#include "transform3d.h"

namespace fft3d {

// The largest errors of any rank, as a part of the largest value that is right.
struct Errors {
  double sine = 0;        // of the wave numbers of sin x · sin 2y · sin 3z, which are known
  double definition = 0;  // of wave numbers of random points, against the sum that defines them
  double round_trip = 0;  // of random points, transformed forward and backward

  bool are_small() const { return sine < 1e-12 && definition < 1e-12 && round_trip < 1e-12; }
};

// Points are complex, or else only their real parts.
class Checker {
 public:
  // Collective over `comm`, as are all functions.
  Checker(MPI_Comm comm, const Problem& problem, Transform3d& transform);

  double sine(Array<double>& points, Array<Complex>& waves);

  // Leaves random points and their wave numbers in the arrays. Looks at all wave numbers of a small
  // problem, at some of a large one.
  double definition(Array<double>& points, Array<Complex>& waves);

  // Of those wave numbers, transformed backward.
  double round_trip(const Array<Complex>& waves, Array<double>& returned);

 private:
  using Index = std::array<int, 3>;

  double points_in_all() const;
  double largest(double mine) const;
  void forward(const std::function<Complex(const Index&)>& value, Array<double>& points,
               Array<Complex>& waves);
  std::vector<Index> wave_numbers_to_look_at() const;
  Complex wave_of_my_points(const Index& wave) const;
  Complex found_at(const Index& wave) const;

  MPI_Comm comm_;
  const Problem& problem_;
  Transform3d& transform_;
  std::vector<double> sent_;    // points of this rank
  std::vector<Complex> found_;  // its wave numbers
};

}  // namespace fft3d
