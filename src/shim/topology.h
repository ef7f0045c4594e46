// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// This rank's neighbours in a communicator with a topology, in the order of the blocks of a
// neighbourhood collective. Blocks of absent neighbours (MPI_PROC_NULL at the edge of a grid) are
// neither read nor written.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace accord::shim {

class Neighbours {
 public:
  explicit Neighbours(MPI_Comm comm);

  // visit(block) for each neighbour that this rank receives from.
  template <class Visit>
  void each_in(Visit visit) const {
    each(in_, visit);
  }
  // The same for those that it sends to.
  template <class Visit>
  void each_out(Visit visit) const {
    each(out_, visit);
  }

 private:
  template <class Visit>
  void each(int blocks, Visit& visit) const {
    for (int block = 0; block < blocks; ++block) {
      if (absent_.empty() || absent_[static_cast<std::size_t>(block)] == 0) visit(block);
    }
  }

  int in_ = 0;
  int out_ = 0;
  std::vector<char> absent_;  // by block; empty: all there
};

}  // namespace accord::shim
