// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/topology.h"

#include <algorithm>
#include <cstddef>

#include "shim/shim.h"

namespace accord::shim {
namespace {

std::vector<int> absent(int count) {
  return std::vector<int>(static_cast<std::size_t>(count), MPI_PROC_NULL);
}

}  // namespace

bool has_topology(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  return host::Topo_test(comm, &kind) == MPI_SUCCESS && kind != MPI_UNDEFINED;
}

Neighbours::Neighbours(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  if (host::Topo_test(comm, &kind) != MPI_SUCCESS) return;
  if (kind == MPI_CART) {
    is_grid_ = true;
    int dimensions = 0;
    (void)host::Cartdim_get(comm, &dimensions);
    for (int dimension = 0; dimension < dimensions; ++dimension) {
      int negative = MPI_PROC_NULL;
      int positive = MPI_PROC_NULL;
      (void)host::Cart_shift(comm, dimension, 1, &negative, &positive);
      sources_.push_back(negative);
      sources_.push_back(positive);
    }
    destinations_ = sources_;
  } else if (kind == MPI_GRAPH) {
    int rank = 0;
    int count = 0;
    (void)host::Comm_rank(comm, &rank);
    (void)host::Graph_neighbors_count(comm, rank, &count);
    sources_ = absent(count);
    (void)host::Graph_neighbors(comm, rank, count, sources_.data());
    destinations_ = sources_;
  } else if (kind == MPI_DIST_GRAPH) {
    int in = 0;
    int out = 0;
    int weighted = 0;
    (void)host::Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    sources_ = absent(in);
    destinations_ = absent(out);
    // MPI_UNWEIGHTED may be a variable of the host MPI's, which nothing here is linked with.
    std::vector<int> weights(static_cast<std::size_t>(std::max(1, std::max(in, out))));
    (void)host::Dist_graph_neighbors(comm, in, sources_.data(), weights.data(), out,
                                     destinations_.data(), weights.data());
  }
}

std::vector<Neighbours::Edge> Neighbours::out() const {
  std::vector<Edge> edges;
  each_out([&](int block) {
    edges.push_back({block, destinations_[static_cast<std::size_t>(block)]});
  });
  return edges;
}

// What goes one way along a dimension of a grid comes from the other side, also where the same rank
// is on both sides.
std::vector<Neighbours::Edge> Neighbours::in() const {
  std::vector<Edge> edges;
  const auto add = [&](std::size_t block) {
    if (sources_[block] != MPI_PROC_NULL)
      edges.push_back({static_cast<int>(block), sources_[block]});
  };
  for (std::size_t block = 0; block < sources_.size(); ++block) add(is_grid_ ? block ^ 1 : block);
  return edges;
}

}  // namespace accord::shim
