// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "calls.h"

#include <algorithm>

namespace accord::model {

std::int64_t combine(Op op, std::int64_t lower, std::int64_t higher) {
  const auto a = static_cast<std::uint64_t>(lower);
  const auto b = static_cast<std::uint64_t>(higher);
  if (op == Op::min) return std::min(lower, higher);
  if (op == Op::sum) return static_cast<std::int64_t>(a + b);
  const auto factor = static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b);
  const auto summand = static_cast<std::uint32_t>(b) * static_cast<std::uint32_t>(a >> 32) +
                       static_cast<std::uint32_t>(b >> 32);
  return static_cast<std::int64_t>(std::uint64_t{summand} << 32 | factor);
}

const char* name_of(Op op) {
  static const char* const names[] = {"none", "sum", "min", "compose"};
  return names[static_cast<std::size_t>(op)];
}

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

}  // namespace accord::model
