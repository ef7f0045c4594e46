// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Neighbourhood collectives, which go pair by pair. Who is whose neighbour only the two ranks of a
// pair know, as they do of sizes.
#pragma once

#include <mpi.h>

#include <utility>
#include <vector>

#include "shim/neighbor_shapes.h"
#include "shim/pair_exchanges.h"

namespace accord::shim {

template <class C>
constexpr Kind kind_of(const shape::Neighbor_allgather<C>&) {
  return Kind::neighbor_allgather;
}
template <class C, class D>
constexpr Kind kind_of(const shape::Neighbor_allgatherv<C, D>&) {
  return Kind::neighbor_allgatherv;
}
template <class C>
constexpr Kind kind_of(const shape::Neighbor_alltoall<C>&) {
  return Kind::neighbor_alltoall;
}
template <class C, class D>
constexpr Kind kind_of(const shape::Neighbor_alltoallv<C, D>&) {
  return Kind::neighbor_alltoallv;
}
template <class C, class D>
constexpr Kind kind_of(const shape::Neighbor_alltoallw<C, D>&) {
  return Kind::neighbor_alltoallw;
}
template <class Shape>
concept AmongNeighbours = requires(const Shape& call) {
  kind_of(call);
};

// Whatever the arrays are: a rank without neighbours has none.
template <AmongNeighbours Shape>
std::size_t pipeline_bytes(const Shape&) {
  return turn_bytes(true);
}
template <AmongNeighbours Shape>
std::optional<Outline> outline(const Shape& call, const CommState& state) {
  if (!has_topology(call.comm)) return std::nullopt;  // the host MPI shall say so
  return movement(kind_of(call), pipeline_bytes(call), 0, state);
}

// What of a buffer a neighbour gets, or gives.
template <AmongNeighbours Shape>
core::Segment sent_block(const Shape& call, int i) {
  if constexpr (requires { call.sendtypes; })
    return block(call.sendcounts[i], call.sendtypes[i], static_cast<MPI_Aint>(call.sdispls[i]));
  else if constexpr (requires { call.sendcounts; })
    return block(call.sendcounts[i], call.sendtype,
                 static_cast<MPI_Aint>(call.sdispls[i]) * extent_of(call.sendtype));
  else if constexpr (kind_of(Shape{}) == Kind::neighbor_alltoall)
    return block(call.sendcount, call.sendtype,
                 static_cast<MPI_Aint>(call.sendcount) * i * extent_of(call.sendtype));
  else
    return block(call.sendcount, call.sendtype, 0);
}
template <AmongNeighbours Shape>
core::Segment received_block(const Shape& call, int i) {
  if constexpr (requires { call.recvtypes; })
    return block(call.recvcounts[i], call.recvtypes[i], static_cast<MPI_Aint>(call.rdispls[i]));
  else if constexpr (requires { call.rdispls; })
    return block(call.recvcounts[i], call.recvtype,
                 static_cast<MPI_Aint>(call.rdispls[i]) * extent_of(call.recvtype));
  else if constexpr (requires { call.displs; })
    return block(call.recvcounts[i], call.recvtype,
                 static_cast<MPI_Aint>(call.displs[i]) * extent_of(call.recvtype));
  else
    return block(call.recvcount, call.recvtype,
                 static_cast<MPI_Aint>(call.recvcount) * i * extent_of(call.recvtype));
}

template <class BlockOf>
core::CallEnd end_of_edges(const core::StagedBuffer& buffer,
                           const std::vector<Neighbours::Edge>& edges, BlockOf block_of) {
  core::CallEnd end = end_of_blocks(buffer, static_cast<int>(edges.size()), [&](int edge) {
    return block_of(edges[static_cast<std::size_t>(edge)].block);
  });
  for (const Neighbours::Edge& edge : edges) end.peers.push_back(edge.rank);
  return end;
}

template <AmongNeighbours Shape>
std::optional<coll::CollArgs> coll_args(const Shape& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch || !has_ways(*sketch, state)) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  const Neighbours neighbours(call.comm);
  made.in = end_of_edges(d.send, neighbours.out(), [&](int i) { return sent_block(call, i); });
  made.in.of_send = true;
  made.out = end_of_edges(d.recv, neighbours.in(), [&](int i) { return received_block(call, i); });
  return finished(std::move(made));
}

// That they do is a mistake, which harms nobody else, or there is nothing in them.
template <AmongNeighbours Shape>
constexpr bool overlaps(const Shape&, int) {
  return false;
}

}  // namespace accord::shim
