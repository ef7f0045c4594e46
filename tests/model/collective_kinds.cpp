// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The names and kinds of the fake MPI's collectives.
#include "fake_mpi.h"
#include "fake_mpi_state.h"

namespace accord::model {

const char* name_of(Collective kind) {
  static const char* const names[] = {"barrier",    "bcast",     "reduce",
                                      "allreduce",  "allgather", "alltoall",
                                      "gather",     "scatter",   "reduce_scatter_block",
                                      "scan",       "exscan",    "reduce_scatter",
                                      "allgatherv", "gatherv",   "scatterv",
                                      "alltoallv",  "comm_dup",  "comm_split",
                                      "comm_free"};
  return names[static_cast<std::size_t>(kind)];
}

bool has_root(Collective kind) {
  return kind == Collective::bcast || kind == Collective::reduce || kind == Collective::gather ||
         kind == Collective::scatter || kind == Collective::gatherv || kind == Collective::scatterv;
}

bool is_reduction(Collective kind) {
  return kind == Collective::reduce || kind == Collective::allreduce ||
         kind == Collective::reduce_scatter_block || kind == Collective::reduce_scatter ||
         is_prefix(kind);
}

bool is_prefix(Collective kind) { return kind == Collective::scan || kind == Collective::exscan; }

bool has_uneven_blocks(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgatherv ||
         kind == Collective::gatherv || kind == Collective::scatterv;
}

bool has_uneven_pairs(Collective kind) { return kind == Collective::alltoallv; }

const char* name_of(Form form) {
  static const char* const names[] = {"blocking", "non-blocking", "persistent"};
  return names[static_cast<std::size_t>(form)];
}

std::string Signature::text() const {
  return std::string(name_of(form)) + " " + name_of(kind) + " op " +
         std::to_string(static_cast<int>(op)) + " root " + std::to_string(root) + " of " +
         std::to_string(size_bytes) + " bytes";
}

}  // namespace accord::model
