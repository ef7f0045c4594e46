// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The operations that can be measured. One is a row of a table: how large the buffers are, what the
// receive buffer must hold afterwards, how to call it, and how its bandwidth is counted. Adding an
// operation is adding a row (operation.cpp for collectives, point_to_point.cpp, stencil.cpp,
// one_sided.cpp). Rows know neither devices nor clocks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/mpi_table.h"
#include "bench/options.h"

namespace accord::bench {

// One size of one operation, seen from one rank.
struct Shape {
  int rank = 0;
  int ranks = 1;
  int root = 0;
  int window = 1;                   // messages in flight of the bandwidth tests
  std::size_t elements = 0;         // the nominal size
  std::vector<int> counts;          // block of each rank; all equal but for reduce_scatter
  std::vector<std::size_t> displs;  // where the blocks begin, in elements

  bool is_root() const { return rank == root; }
  std::size_t count() const { return static_cast<std::size_t>(counts[0]); }
  std::size_t own_count() const { return static_cast<std::size_t>(counts[index()]); }
  std::size_t own_displ() const { return displs[index()]; }
  std::size_t total() const { return displs.back() + static_cast<std::size_t>(counts.back()); }
  std::size_t index() const { return static_cast<std::size_t>(rank); }
};

// Elements this rank reads of its send buffer and writes to its receive buffer, both from their
// start.
struct Extent {
  std::size_t send = 0;
  std::size_t recv = 0;
};

// What `count` elements of the receive buffer, from `recv_first`, must be: the elements from
// `source_first` of what the ranks of [rank_first, rank_last) send, reduced (one rank: copied).
struct Segment {
  std::size_t recv_first = 0;
  std::size_t count = 0;
  int rank_first = 0;
  int rank_last = 0;
  std::size_t source_first = 0;
};

// What a peer does around every single message of an operation that sends several at once.
class MessageHooks {
 public:
  virtual ~MessageHooks() = default;
  virtual void before_send(std::size_t slot) = 0;
  virtual void after_receive(std::size_t slot) = 0;
};

// Everything an MPI call needs. Invocations keep pointers into it.
struct Call {
  Shape shape;
  void* send = nullptr;
  void* recv = nullptr;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::size_t element_bytes = 0;
  MPI_Op op = MPI_OP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> displs;        // of the v-forms
  std::vector<int> displs_bytes;  // of the w-form
  std::vector<MPI_Datatype> types;
  MessageHooks* hooks = nullptr;
};

// An MPI call ready to be made again and again.
class Invocation {
 public:
  virtual ~Invocation() = default;
  virtual int run() = 0;  // MPI's return code
};

// An operation is one step or, where what is read depends on what was received before, several.
struct Step {
  std::unique_ptr<Invocation> invocation;
  bool reads_send = true;
  bool writes_recv = true;
  bool by_message = false;  // calls the hooks for each message
};
using Steps = std::vector<Step>;

// What size_bytes counts, and by what the bandwidth is found from it (nccl-tests, PERFORMANCE.md).
enum class Bandwidth {
  none,
  whole,            // size
  allreduce,        // size x 2 (n-1)/n
  per_rank,         // n x size x (n-1)/n
  scattered,        // size x (n-1)/n
  both_directions,  // 2 x size
};

enum class Blocks {
  per_rank,     // every block has `elements`
  split_equal,  // `elements` are split into n equal blocks (at least 1 each)
  split,        // the same with the remainder on the first ranks
};

enum class Displacements { none, elements, bytes };

struct Operation {
  const char* name;
  bool has_data = true;
  bool reduces = false;
  bool synchronises =
      false;             // no rank can leave before all have entered: calls may be timed in batches
  bool has_form = true;  // false: always non-blocking
  bool reads_others = false;  // what a rank has that does nothing meanwhile
  int ranks_min = 1;
  int ranks_timed = 0;  // the first that many ranks' clocks count; 0: all
  Bandwidth bandwidth = Bandwidth::whole;
  Blocks blocks = Blocks::per_rank;
  Displacements displacements = Displacements::none;
  // Messages one run stands for: its time is divided by it.
  int (*parts)(const Shape& shape) = [](const Shape&) { return 1; };
  Extent (*extent)(const Shape& shape) = [](const Shape&) { return Extent{}; };
  std::vector<Segment> (*expected)(const Shape& shape) = [](const Shape&) {
    return std::vector<Segment>{};
  };
  // The steps of this rank; none at all (not: no steps) when the MPI lacks this form of the call.
  std::function<std::optional<Steps>(const MpiTable& mpi, Form form, const Call& call)> bind;
};

const std::vector<Operation>& operations();
const Operation* find_operation(std::string_view name);

std::vector<Operation> point_to_point_operations();
std::vector<Operation> stencil_operations();
std::vector<Operation> one_sided_operations();

struct ShapeRequest {
  int rank, ranks;
  std::size_t size_bytes, element_bytes;
  std::size_t window = 64;  // messages in flight of the bandwidth tests, at most
};
// None when the counts or displacements would not fit into an int.
std::optional<Shape> make_shape(const Operation& operation, const ShapeRequest& request);

struct CallRequest {
  const Shape* shape;
  void* send;
  void* recv;
  MPI_Datatype type;
  std::size_t element_bytes;
  MPI_Op op;
  MPI_Comm comm;
};
// The arguments of the MPI calls of one size, at an address that does not change.
std::unique_ptr<Call> make_call(const Operation& operation, const CallRequest& request);

// Bytes that count for the bandwidth, in one run of one part.
double bandwidth_bytes(const Operation& operation, const Shape& shape, std::size_t element_bytes);

}  // namespace accord::bench
