// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "reshape.h"

#include <climits>
#include <stdexcept>

namespace fft3d {

std::size_t Blocks::in_waves() const {
  return static_cast<std::size_t>(outer.total) * static_cast<std::size_t>(middle) *
         static_cast<std::size_t>(inner.size(rank));
}

Reshape::Reshape(Device& device, MPI_Comm comm, const Blocks& blocks)
    : device_(device), comm_(comm), ranks_(blocks.inner.parts), blocks_(blocks) {
  if (blocks.in_waves() > INT_MAX || blocks.in_points() > INT_MAX)
    throw std::runtime_error("more elements in a rank than an int counts: take more ranks");
  const int mine = blocks.inner.size(blocks.rank);
  const int rows = static_cast<int>(blocks.rows());
  for (int peer = 0; peer < ranks_; ++peer) {
    wave_counts_.push_back(blocks.outer.size(peer) * blocks.middle * mine);
    wave_starts_.push_back(blocks.outer.first(peer) * blocks.middle * mine);
    point_counts_.push_back(rows * blocks.inner.size(peer));
    point_starts_.push_back(rows * blocks.inner.first(peer));
  }
}

const Complex* Reshape::rows_of(int peer, const Complex* array) const {
  return array + blocks_.inner.first(peer);
}

void Reshape::pack(int peer, const Complex* array, Complex* packed) {
  const auto width = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.size(peer));
  const auto pitch = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.total);
  if (width > 0 && blocks_.rows() > 0)
    device_.copy_rows(packed + point_starts_[index(peer)], width, rows_of(peer, array), pitch,
                      width, blocks_.rows());
}

void Reshape::unpack(int peer, const Complex* packed, Complex* array) {
  const auto width = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.size(peer));
  const auto pitch = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.total);
  if (width > 0 && blocks_.rows() > 0)
    device_.copy_rows(array + blocks_.inner.first(peer), pitch, packed + point_starts_[index(peer)],
                      width, width, blocks_.rows());
}

namespace {

// One MPI_Alltoallv between what lies contiguous already, and a packed copy of the rows.
class ByAlltoallv : public Reshape {
 public:
  ByAlltoallv(Device& device, MPI_Comm comm, const Blocks& blocks)
      : Reshape(device, comm, blocks), packed_(device, blocks.in_points()) {}

  void to_points(const Complex* from, Complex* to) override {
    timed([&] {
      MPI_Alltoallv(from, wave_counts_.data(), wave_starts_.data(), MPI_C_DOUBLE_COMPLEX,
                    packed_.data(), point_counts_.data(), point_starts_.data(),
                    MPI_C_DOUBLE_COMPLEX, comm_);
    });
    for (int peer = 0; peer < ranks_; ++peer) unpack(peer, packed_.data(), to);
  }
  void to_waves(const Complex* from, Complex* to) override {
    for (int peer = 0; peer < ranks_; ++peer) pack(peer, from, packed_.data());
    device_.synchronise();
    timed([&] {
      MPI_Alltoallv(packed_.data(), point_counts_.data(), point_starts_.data(),
                    MPI_C_DOUBLE_COMPLEX, to, wave_counts_.data(), wave_starts_.data(),
                    MPI_C_DOUBLE_COMPLEX, comm_);
    });
  }

 private:
  Array<Complex> packed_;
};

}  // namespace

std::unique_ptr<Reshape> make_reshape(const std::string& how, Device& device, MPI_Comm comm,
                                      const Split& outer, int middle, const Split& inner) {
  Blocks blocks{outer, middle, inner, 0};
  MPI_Comm_rank(comm, &blocks.rank);
  if (how == "alltoallv") return std::make_unique<ByAlltoallv>(device, comm, blocks);
  throw std::runtime_error("no reshape by " + how);
}

}  // namespace fft3d
