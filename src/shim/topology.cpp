// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/topology.h"

#include "shim/shim.h"

namespace accord::shim {

Neighbours::Neighbours(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  if (host::Topo_test(comm, &kind) != MPI_SUCCESS) return;
  if (kind == MPI_CART) {
    int dimensions = 0;
    (void)host::Cartdim_get(comm, &dimensions);
    in_ = out_ = 2 * dimensions;
    for (int dimension = 0; dimension < dimensions; ++dimension) {
      int negative = 0;
      int positive = 0;
      (void)host::Cart_shift(comm, dimension, 1, &negative, &positive);
      absent_.push_back(negative == MPI_PROC_NULL);
      absent_.push_back(positive == MPI_PROC_NULL);
    }
  } else if (kind == MPI_GRAPH) {
    int rank = 0;
    (void)host::Comm_rank(comm, &rank);
    (void)host::Graph_neighbors_count(comm, rank, &in_);
    out_ = in_;
  } else if (kind == MPI_DIST_GRAPH) {
    int weighted = 0;
    (void)host::Dist_graph_neighbors_count(comm, &in_, &out_, &weighted);
  }
}

}  // namespace accord::shim
