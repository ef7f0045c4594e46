// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// This rank's neighbours in a communicator with a topology, in the order of the blocks of a
// neighbourhood collective. Blocks of absent neighbours (MPI_PROC_NULL at the edge of a grid) are
// neither read nor written. A rank may be a neighbour several times, and its own.
#pragma once

#include <mpi.h>

#include <vector>

namespace accord::shim {

bool has_topology(MPI_Comm comm);

class Neighbours {
 public:
  explicit Neighbours(MPI_Comm comm);

  // visit(block) for each neighbour that this rank receives from.
  template <class Visit>
  void each_in(Visit visit) const {
    each(sources_, visit);
  }
  // The same for those that it sends to.
  template <class Visit>
  void each_out(Visit visit) const {
    each(destinations_, visit);
  }

  // Blocks, absent neighbours' included.
  int in_count() const noexcept { return static_cast<int>(sources_.size()); }
  int out_count() const noexcept { return static_cast<int>(destinations_.size()); }

  struct Edge {
    int block;
    int rank;
  };
  // The edges that there are. Those between two ranks are in one order on both of them.
  std::vector<Edge> in() const;
  std::vector<Edge> out() const;

 private:
  template <class Visit>
  void each(const std::vector<int>& ranks, Visit& visit) const {
    int block = 0;
    for (const int rank : ranks) {
      if (rank != MPI_PROC_NULL) visit(block);
      ++block;
    }
  }

  std::vector<int> sources_;
  std::vector<int> destinations_;
  bool is_grid_ = false;
};

}  // namespace accord::shim
