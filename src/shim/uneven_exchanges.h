// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The collectives through exchange regions whose blocks differ by rank. How long they are all ranks
// know; where they lie is each rank's own. Blocks that happen to be equal are like those of any
// other collective.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "shim/exchanges.h"

namespace accord::shim {

// The mean block, where that is long enough to be worth a vote, else 0: also for wrong arguments,
// which the host MPI shall report.
template <class C>
std::size_t mean_bytes(MPI_Comm comm, const C* counts, MPI_Datatype datatype) {
  if (job.votes_from_bytes == 0 || counts == nullptr || datatype == MPI_DATATYPE_NULL) return 0;
  const CommState* const state = comm_state(comm);
  if (state == nullptr || state->inter) return 0;
  MPI_Count total = 0;
  for (int rank = 0; rank < state->size; ++rank) {
    if (counts[rank] < 0) return 0;
    total += counts[rank];
  }
  const auto bytes = static_cast<std::size_t>(total * size_of(datatype) / state->size);
  return bytes >= job.votes_from_bytes ? bytes : 0;
}
template <class C>
std::size_t pipeline_bytes(const shape::Reduce_scatter<C>& call) {
  return mean_bytes(call.comm, call.recvcounts, call.datatype);
}
template <class C, class D>
std::size_t pipeline_bytes(const shape::Allgatherv<C, D>& call) {
  return mean_bytes(call.comm, call.recvcounts, call.recvtype);
}

// Of all ranks.
template <class C>
std::vector<std::size_t> blocks_bytes(const C* counts, MPI_Datatype datatype,
                                      const CommState& state) {
  const auto element_bytes = static_cast<std::size_t>(size_of(datatype));
  std::vector<std::size_t> blocks(static_cast<std::size_t>(state.size));
  std::transform(counts, counts + state.size, blocks.begin(),
                 [&](C count) { return static_cast<std::size_t>(count) * element_bytes; });
  return blocks;
}
inline std::vector<std::size_t> unless_equal(std::vector<std::size_t> blocks) {
  const auto differs = std::ranges::adjacent_find(blocks, std::ranges::not_equal_to());
  return differs == blocks.end() ? std::vector<std::size_t>() : std::move(blocks);
}

// By rank; empty where all are equal.
template <class Shape>
std::vector<std::size_t> uneven_blocks(const Shape&, const CommState&) {
  return {};
}
template <class C>
std::vector<std::size_t> uneven_blocks(const shape::Reduce_scatter<C>& call,
                                       const CommState& state) {
  return unless_equal(blocks_bytes(call.recvcounts, call.datatype, state));
}
// The own block is what this rank sends. Where it is not what the others expect, which is a
// mistake, the vote tells.
template <class C, class D>
std::vector<std::size_t> uneven_blocks(const shape::Allgatherv<C, D>& call,
                                       const CommState& state) {
  auto blocks = blocks_bytes(call.recvcounts, call.recvtype, state);
  if (!shape::in_place(call.sendbuf) && call.sendtype != MPI_DATATYPE_NULL) {
    blocks[static_cast<std::size_t>(state.rank)] =
        static_cast<std::size_t>(call.sendcount) * static_cast<std::size_t>(size_of(call.sendtype));
  }
  return unless_equal(std::move(blocks));
}

template <class C>
std::optional<Outline> outline(const shape::Reduce_scatter<C>& call, const CommState& state) {
  auto made =
      reduction(Kind::reduce_scatter, pipeline_bytes(call), call.op, call.datatype, 0, state);
  if (made) made->blocks_bytes = uneven_blocks(call, state);
  return made;
}
template <class C, class D>
std::optional<Outline> outline(const shape::Allgatherv<C, D>& call, const CommState& state) {
  auto made = movement(Kind::allgatherv, pipeline_bytes(call), 0, state);
  if (made) made->blocks_bytes = uneven_blocks(call, state);
  return made;
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Reduce_scatter<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  const bool in_place = shape::in_place(call.sendbuf);
  const auto total = std::accumulate(call.recvcounts, call.recvcounts + state.size, std::size_t{0});
  made.in = call_end(in_place ? d.recv : d.send, total, call.datatype);
  made.in.of_send = !in_place;
  made.out = call_end(d.recv, static_cast<std::size_t>(call.recvcounts[state.rank]), call.datatype);
  return finished(std::move(made));
}

// Blocks of recvtype, each at its displacement. One after the other they are like one buffer.
template <class C, class D>
core::CallEnd gathered_end(const shape::Allgatherv<C, D>& call, const Description& d,
                           const CommState& state) {
  const MPI_Aint extent = extent_of(call.recvtype);
  std::vector<core::Segment> blocks;
  std::size_t total = 0;
  bool in_a_row = true;
  for (int rank = 0; rank < state.size; ++rank) {
    const auto count = static_cast<std::size_t>(call.recvcounts[rank]);
    if (count == 0) continue;
    const auto displacement = static_cast<MPI_Aint>(call.displs[rank]) * extent;
    blocks.push_back({typemap(call.recvtype), count, displacement});
    in_a_row =
        in_a_row && displacement == blocks[0].offset_bytes + static_cast<MPI_Aint>(total) * extent;
    total += count;
  }
  core::CallEnd end = call_end(d.recv, total, call.recvtype);
  if (in_a_row) {
    end.segment.offset_bytes = blocks[0].offset_bytes;
  } else {
    end.blocks = std::move(blocks);
  }
  return end;
}

template <class C, class D>
std::optional<coll::CollArgs> coll_args(const shape::Allgatherv<C, D>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  made.in_place = shape::in_place(call.sendbuf);
  made.out = gathered_end(call, d, state);
  made.in = made.in_place
                ? made.out
                : call_end(d.send, static_cast<std::size_t>(call.sendcount), call.sendtype);
  made.in.of_send = !made.in_place;
  return finished(std::move(made));
}

}  // namespace accord::shim
