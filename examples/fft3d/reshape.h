// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Between two transforms an array changes hands, so that each rank has the whole of the next axis.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "device.h"

namespace fft3d {

// An axis in parts that differ by one element at most.
struct Split {
  int total;
  int parts;

  int first(int part) const {
    return static_cast<int>(static_cast<long long>(total) * part / parts);
  }
  int size(int part) const { return first(part + 1) - first(part); }
};

// An array of outer x middle x inner elements, the inner ones beside each other, that the ranks of
// a communicator share in one of two ways.
//   waves:  a rank has the whole outer axis and its part of the inner one
//   points: a rank has the whole inner axis and its part of the outer one
// What a rank has of another rank's part is a block: contiguous in the first way, rows in the
// second.
struct Blocks {
  Split outer;
  int middle;
  Split inner;
  int rank;

  std::size_t rows() const {
    return static_cast<std::size_t>(outer.size(rank)) * static_cast<std::size_t>(middle);
  }
  // Elements of the whole array of this rank, in either way.
  std::size_t in_waves() const;
  std::size_t in_points() const { return rows() * static_cast<std::size_t>(inner.total); }
};

class Reshape {
 public:
  virtual ~Reshape() = default;
  Reshape(const Reshape&) = delete;
  Reshape& operator=(const Reshape&) = delete;

  // `from` is complete; `to` is so once the device is synchronised.
  virtual void to_points(const Complex* from, Complex* to) = 0;
  virtual void to_waves(const Complex* from, Complex* to) = 0;

  double seconds_in_mpi() const { return seconds_; }

 protected:
  Reshape(Device& device, MPI_Comm comm, const Blocks& blocks);

  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }

  // Begin to copy the rows of a peer between an array and a contiguous block.
  void pack(int peer, const Complex* array, Complex* block);
  void unpack(int peer, const Complex* block, Complex* array);

  template <class Call>
  void timed(const Call& call) {
    const double start = MPI_Wtime();
    call();
    seconds_ += MPI_Wtime() - start;
  }

  Device& device_;
  MPI_Comm comm_;
  int ranks_;
  Blocks blocks_;
  // Elements that this rank has of each peer's part, and where they begin if all lie in the order
  // of the peers: in an array shared as waves, and packed of one shared as points.
  std::vector<int> wave_counts_, wave_starts_, point_counts_, point_starts_;

 private:
  double seconds_ = 0;
};

// `how` is alltoallv, alltoallw, messages or staged. Collective over `comm`.
std::unique_ptr<Reshape> make_reshape(const std::string& how, Device& device, MPI_Comm comm,
                                      const Split& outer, int middle, const Split& inner);

}  // namespace fft3d
