// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI calls of a test's programs as data, whichever MPI they are made to: handles, buffers, and
// what describes a collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace accord::model {

using Comm = int;
constexpr Comm kWorld = 0;
constexpr Comm kNoComm = -1;
constexpr int kAnySource = -1;
constexpr int kUndefined = -1;

using Request = std::uint64_t;
constexpr Request kNoRequest = 0;
constexpr Request kDoneRequest = 1;  // one handle for every request complete at birth

// `count` blocks of block_bytes, stride_bytes apart: dense when both are equal.
struct Type {
  std::size_t block_bytes = 8;
  std::size_t stride_bytes = 8;
};
struct Buffer {
  void* data = nullptr;
  Type type;
  std::size_t count = 0;
  std::size_t size_bytes() const noexcept { return type.block_bytes * count; }
};

struct MessageStatus {
  int source = kUndefined;
  int tag = kUndefined;
  std::size_t size_bytes = 0;
  bool cancelled = false;
};

enum class Collective {
  barrier,
  bcast,
  reduce,
  allreduce,
  allgather,
  alltoall,
  gather,
  scatter,
  reduce_scatter_block,
  scan,
  exscan,
  reduce_scatter,
  allgatherv,
  gatherv,
  scatterv,
  alltoallv,
  dup,
  split,
  free
};
enum class Form { blocking, nonblocking, persistent };
enum class SendMode { standard, synchronous };
// On 64-bit integers. compose: of affine maps, a factor and a summand of 32 bits each; not
// commutative.
enum class Op { none, sum, min, compose };
// What `op` makes of the element of a lower rank and that of a higher one.
std::int64_t combine(Op op, std::int64_t lower, std::int64_t higher);
const char* name_of(Op op);
const char* name_of(Collective kind);
bool has_root(Collective kind);
bool is_reduction(Collective kind);
bool is_prefix(Collective kind);
bool has_uneven_blocks(Collective kind);
bool has_uneven_pairs(Collective kind);  // each pair of ranks has a size of its own
const char* name_of(Form form);

struct CollectiveArgs {
  Collective kind = Collective::barrier;
  Op op = Op::none;
  int root = 0;
  Buffer send{};  // bcast uses recv alone, on the root too
  Buffer recv{};
  bool in_place = false;
  // By member where blocks differ; where pairs do, of what comes from it and what goes to it.
  std::vector<std::size_t> blocks_bytes{};
  std::vector<std::size_t> sent_bytes{};
  int color = 0;            // split
  Comm* created = nullptr;  // dup, split; set at completion
};

}  // namespace accord::model
