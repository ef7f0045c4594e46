// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// This rank's neighbours in a communicator with a topology, in the order of the blocks of a
// neighbourhood collective. Blocks of absent neighbours (MPI_PROC_NULL at the edge of a grid) are
// neither read nor written.
#pragma once

#include <mpi.h>

#include <vector>

namespace accord::shim {

struct Neighbours {
  explicit Neighbours(MPI_Comm comm);
  bool present(int block) const {
    return absent_.empty() || absent_[static_cast<std::size_t>(block)] == 0;
  }

  int in = 0;
  int out = 0;

 private:
  std::vector<char> absent_;  // by block; empty: all there
};

}  // namespace accord::shim
