// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "transform3d.h"

#include <algorithm>
#include <utility>

namespace fft3d {

Transform3d::Transform3d(Device& device, MPI_Comm comm, const Problem& problem)
    : device_(device), problem_(problem) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const int p = rank / problem.grid[1];
  const int q = rank % problem.grid[1];
  MPI_Comm_split(comm, p, q, &row_);
  MPI_Comm_split(comm, q, p, &column_);

  const auto [nx, ny, nz] = problem.size;
  const auto [rows, columns] = problem.grid;
  const Split x{nx, rows};
  const Split y{ny, columns};
  const Split ky{ny, rows};
  const Split kz{wave_numbers(nz, problem.real), columns};
  points_ = {{x.first(p), y.first(q), 0}, {x.size(p), y.size(q), nz}};
  waves_ = {{0, ky.first(p), kz.first(q)}, {nx, ky.size(p), kz.size(q)}};

  stages_[0] = {along(2, x.size(p) * y.size(q)), between(row_, kz, x.size(p), y)};
  stages_[1] = {along(1, kz.size(q) * x.size(p)), between(column_, ky, kz.size(q), x)};
  stages_[2] = {along(0, ky.size(p) * kz.size(q)), nullptr};

  const Box after_z{{}, {kz.total, x.size(p), y.size(q)}};
  const Box before_y{{}, {kz.size(q), x.size(p), ny}};
  const auto largest = std::max({after_z.elements(), before_y.elements(), waves_.elements()});
  for (int i = 0; i < 2; ++i) work_.emplace_back(device, largest);
}

Transform3d::~Transform3d() {
  MPI_Comm_free(&row_);
  MPI_Comm_free(&column_);
}

std::unique_ptr<Transform> Transform3d::along(int axis, int count) const {
  const bool real = problem_.real && axis == 2;
  const int length = problem_.size[static_cast<std::size_t>(axis)];
  return count > 0 ? device_.transform(length, count, real) : nullptr;
}

std::unique_ptr<Reshape> Transform3d::between(MPI_Comm comm, Split outer, int middle,
                                              Split inner) const {
  if (outer.parts == 1) return nullptr;
  return make_reshape(problem_.reshape, device_, comm, outer, middle, inner);
}

Complex* Transform3d::other_than(const void* used) const {
  return used == work_[0].data() ? work_[1].data() : work_[0].data();
}

void Transform3d::forward(const void* points, Complex* waves) {
  const void* from = points;
  for (Stage& stage : stages_) {
    Complex* to = &stage == &stages_.back() ? waves : other_than(from);
    if (stage.transform) stage.transform->forward(from, to);
    if (stage.reshape) {
      device_.synchronise();
      const Complex* const transformed = std::exchange(to, other_than(to));
      stage.reshape->to_points(transformed, to);
    }
    from = to;
  }
}

void Transform3d::backward(const Complex* waves, void* points) {
  const Complex* from = waves;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    if (stage->reshape) {
      device_.synchronise();
      Complex* const reshaped = other_than(from);
      stage->reshape->to_waves(from, reshaped);
      from = reshaped;
    }
    Complex* const to = other_than(from);
    const bool is_last = stage + 1 == stages_.rend();
    if (stage->transform) stage->transform->backward(from, is_last ? points : to);
    from = to;
  }
}

double Transform3d::seconds_in_mpi() const {
  double seconds = 0;
  for (const Stage& stage : stages_)
    if (stage.reshape) seconds += stage.reshape->seconds_in_mpi();
  return seconds;
}

}  // namespace fft3d
