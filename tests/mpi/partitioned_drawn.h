// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What random partitioned collectives are made of: operations, types, communicators, counts.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "partitioned_collectives.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {

// One after the other, x -> a x + b modulo 2^16: not commutative.
inline std::uint32_t composed(std::uint32_t first, std::uint32_t second) {
  const std::uint32_t a = (first >> 16) * (second >> 16);
  const std::uint32_t b = (second >> 16) * (first & 0xffff) + (second & 0xffff);
  return a << 16 | (b & 0xffff);
}
inline void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    auto& second = static_cast<std::uint32_t*>(inout)[i];
    second = composed(static_cast<const std::uint32_t*>(in)[i], second);
  }
}
// Of two words and one that is a gap.
inline void compose_apart(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count * 3; ++i) {
    auto& second = static_cast<std::uint32_t*>(inout)[i];
    if (i % 3 != 2) second = composed(static_cast<const std::uint32_t*>(in)[i], second);
  }
}

// Small whole numbers, so that the order of additions does not matter.
inline void to_doubles(std::vector<std::byte>& bytes) {
  for (std::size_t i = 0; i + sizeof(double) <= bytes.size(); i += sizeof(double)) {
    const double value = static_cast<int>(bytes[i]) - 100;
    std::memcpy(bytes.data() + i, &value, sizeof value);
  }
}
inline void to_pairs(std::vector<std::byte>& bytes) {
  struct DoubleInt {
    double value;
    int index;
  };
  for (std::size_t i = 0; i + sizeof(DoubleInt) <= bytes.size(); i += sizeof(DoubleInt)) {
    const double value = static_cast<int>(bytes[i]) % 4;
    std::memcpy(bytes.data() + i, &value, sizeof value);
  }
}

struct Operation {
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  std::size_t element_bytes = 4;
  std::size_t used_bytes = 4;
  std::function<void(std::vector<std::byte>&)> tame = {};
  bool of_users = false;
};

// What is made once and freed at the end.
struct Made {
  MPI_Op compose = MPI_OP_NULL;
  MPI_Op compose_apart = MPI_OP_NULL;
  MPI_Datatype apart = MPI_DATATYPE_NULL;   // two words and a gap
  MPI_Datatype spread = MPI_DATATYPE_NULL;  // every other word of three
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Comm wide_grid = MPI_COMM_NULL;  // with an edge
  MPI_Comm graph = MPI_COMM_NULL;

  Made() {
    MPI_Op_create(test::compose, 0, &compose);
    MPI_Op_create(test::compose_apart, 0, &compose_apart);
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_create_resized(pair, 0, 12, &apart);
    MPI_Type_commit(&apart);
    MPI_Type_free(&pair);
    MPI_Type_vector(2, 1, 2, MPI_UINT32_T, &spread);
    MPI_Type_commit(&spread);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    const int periodic[] = {1, 1};
    const int closed[] = {1, 0};
    const int dims[] = {size, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &grid);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, closed + 1, 0, &wide_grid);
    // To the next rank twice and to itself; rank 0 gives to nobody else.
    const int next[] = {(rank + 1) % size, (rank + 1) % size, rank};
    const int before[] = {(rank + size - 1) % size, (rank + size - 1) % size, rank};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, before, MPI_UNWEIGHTED, 3, next,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  }
  void free() {
    MPI_Op_free(&compose);
    MPI_Op_free(&compose_apart);
    MPI_Type_free(&apart);
    MPI_Type_free(&spread);
    for (MPI_Comm* comm : {&reversed, &grid, &wide_grid, &graph}) MPI_Comm_free(comm);
  }
};

inline Operation any_operation(Random& common, const Made& made) {
  switch (common.below(9)) {
    case 0:
      return {MPI_INT, MPI_SUM};
    case 1:
      return {MPI_INT, MPI_MAX};
    case 2:
      return {MPI_UNSIGNED, MPI_PROD};
    case 3:
      return {MPI_BYTE, MPI_BXOR, 1, 1};
    case 4:
      return {MPI_SHORT, MPI_LAND, 2, 2};
    case 5:
      return {MPI_DOUBLE, MPI_SUM, 8, 8, to_doubles};
    case 6:
      return {MPI_DOUBLE_INT, MPI_MAXLOC, 16, 12, to_pairs};
    case 7:
      return {MPI_UINT32_T, made.compose, 4, 4, {}, true};
    default:
      return {made.apart, made.compose_apart, 12, 8, {}, true};
  }
}

// What random collectives are made of; drawn alike on all ranks.
struct Drawn {
  int partitions;
  int count;  // of a partition
  int root;
  bool in_place;
  MPI_Comm comm;
  MPI_Comm neighbours;
  int own;
  int ranks;
  MPI_Datatype datatype;
  std::size_t extent;
  Operation operation;
  std::vector<int> counts;   // by rank, of a partition
  std::vector<int> whole;    // of all
  std::vector<int> offsets;  // in elements, with some between them

  int total() const { return partitions * count; }
  std::size_t blocks_bytes() const { return total_elements() * extent; }
  std::size_t total_elements() const {
    return static_cast<std::size_t>(offsets.back() + whole.back());
  }
};

inline Drawn draw(Random& common, const Made& made) {
  constexpr int kPartitions[] = {1, 2, 3, 7, 16};
  constexpr int kCounts[] = {0, 1, 2, 5, 64, 300, 5000};
  Drawn drawn{};
  drawn.partitions = kPartitions[common.below(5)];
  drawn.count = kCounts[common.below(7)];
  drawn.in_place = common.below(3) == 0;
  constexpr int kSelf = 5;
  const int which = common.below(kSelf + 1);
  drawn.comm = which == kSelf ? MPI_COMM_SELF : which > 2 ? made.reversed : MPI_COMM_WORLD;
  const MPI_Comm neighbourhoods[] = {made.grid, made.wide_grid, made.graph};
  drawn.neighbours = neighbourhoods[common.below(3)];
  MPI_Comm_rank(drawn.comm, &drawn.own);
  MPI_Comm_size(drawn.comm, &drawn.ranks);
  drawn.root = common.below(size) % drawn.ranks;
  drawn.operation = any_operation(common, made);
  const bool spread = common.below(2) != 0;
  drawn.datatype = spread ? made.spread : MPI_INT;
  drawn.extent = spread ? 12 : 4;
  int next = 0;
  for (int i = 0; i < drawn.ranks; ++i) {
    drawn.counts.push_back(common.below(3) == 0 ? 0 : common.below(40));
    drawn.whole.push_back(drawn.counts.back() * drawn.partitions);
    drawn.offsets.push_back(next);
    next += drawn.whole.back() + common.below(3);
  }
  return drawn;
}

inline Collective base(const char* name, const Drawn& d, std::size_t send_bytes,
                       std::size_t recv_bytes) {
  Collective made;
  made.name = name;
  made.partitions = d.partitions;
  made.send_bytes = send_bytes;
  made.recv_bytes = recv_bytes;
  made.in_place = d.in_place;
  return made;
}
inline std::size_t bytes_of(const Drawn& d, int elements) {
  return static_cast<std::size_t>(elements) * d.extent;
}

inline Collective reduction(const char* name, const Drawn& d, int send_count, int recv_count) {
  Collective made = base(name, d, static_cast<std::size_t>(send_count) * d.operation.element_bytes,
                         static_cast<std::size_t>(recv_count) * d.operation.element_bytes);
  if (d.in_place) made.recv_bytes = std::max(made.recv_bytes, made.send_bytes);
  made.element_bytes = d.operation.element_bytes;
  made.used_bytes = d.operation.used_bytes;
  made.tame = d.operation.tame;
  return made;
}

}  // namespace accord::test

#endif
