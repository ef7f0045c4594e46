// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The transform of a three-dimensional array that is spread over the ranks of a communicator.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "reshape.h"

namespace fft3d {

struct Problem {
  std::array<int, 3> size{};  // points along x, y and z
  std::array<int, 2> grid{};  // ranks: those along the first dimension differ in x
  bool real = false;          // real points, of whose wave numbers along z only half are kept
  std::string reshape;        // alltoallv, alltoallw, messages, staged
};

// A part of an array. The elements along z lie beside each other, those along x furthest apart.
struct Box {
  std::array<int, 3> first{};
  std::array<int, 3> size{};

  std::size_t elements() const {
    return static_cast<std::size_t>(size[0]) * static_cast<std::size_t>(size[1]) *
           static_cast<std::size_t>(size[2]);
  }
};

// A rank has a pencil of points along z, and of wave numbers along x. With one rank in the second
// dimension of the grid these are slabs, and there is one reshape instead of two.
//
//   what a rank has, outermost axis first          what is done to it
//   x part,  y part,  z whole                      transform along z
//   kz whole, x part, y part                       reshape in the rows of the grid
//   kz part, x part,  y whole                      transform along y
//   ky whole, kz part, x part                      reshape in the columns of the grid
//   ky part, kz part, x whole                      transform along x
//   kx whole, ky part, kz part
class Transform3d {
 public:
  Transform3d(Device& device, MPI_Comm comm, const Problem& problem);
  ~Transform3d();
  Transform3d(const Transform3d&) = delete;
  Transform3d& operator=(const Transform3d&) = delete;

  const Box& points() const { return points_; }
  const Box& waves() const { return waves_; }

  // Points are doubles if the problem is real, else complex. Neither direction divides by the
  // number of points. Begin on the device.
  void forward(const void* points, Complex* waves);
  void backward(const Complex* waves, void* points);

  double seconds_in_mpi() const;

 private:
  // A transform along one axis, and the reshape that follows it, unless one rank has it all.
  struct Stage {
    std::unique_ptr<Transform> transform;  // null if this rank has nothing to transform
    std::unique_ptr<Reshape> reshape;
  };

  Complex* other_than(const void* used) const;  // the work array that is free
  std::unique_ptr<Transform> along(int axis, int count) const;
  std::unique_ptr<Reshape> between(MPI_Comm comm, Split outer, int middle, Split inner) const;

  Device& device_;
  Problem problem_;
  MPI_Comm row_ = MPI_COMM_NULL;
  MPI_Comm column_ = MPI_COMM_NULL;
  Box points_;
  Box waves_;
  std::array<Stage, 3> stages_;  // along z, y and x
  std::vector<Array<Complex>> work_;
};

}  // namespace fft3d
