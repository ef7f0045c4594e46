// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The collectives in which every pair of ranks has a size of its own, known to these two alone:
// they go pair by pair (coll/pairs/pair.h). All such calls of a communicator and kind
// count together, whatever they move.
#pragma once

#include <mpi.h>

#include <utility>
#include <vector>

#include "shim/coll_args.h"

namespace accord::shim {

// Stands for a size where there is none: such calls take their turn wherever they may go another
// way.
inline std::size_t turn_bytes(bool arguments_there) {
  return arguments_there && job.has_devices && config().node_bytes != 0 ? 1 : 0;
}
template <class Call>
bool is_root(const Call& call) {
  const CommState* const state = comm_state(call.comm);
  return state != nullptr && !state->inter && state->rank == call.root;
}
template <class C, class D>
std::size_t pipeline_bytes(const shape::Gatherv<C, D>& call) {
  const bool there = call.recvcounts != nullptr && call.displs != nullptr;
  return turn_bytes(there || !is_root(call));
}
template <class C, class D>
std::size_t pipeline_bytes(const shape::Scatterv<C, D>& call) {
  const bool there = call.sendcounts != nullptr && call.displs != nullptr;
  return turn_bytes(there || !is_root(call));
}
template <class Call>
bool has_arrays(const Call& call) {
  const bool sends = call.sendcounts != nullptr && call.sdispls != nullptr;
  return (sends || shape::in_place(call.sendbuf)) && call.recvcounts != nullptr &&
         call.rdispls != nullptr;
}
template <class C, class D>
std::size_t pipeline_bytes(const shape::Alltoallv<C, D>& call) {
  return turn_bytes(has_arrays(call));
}
template <class C, class D>
std::size_t pipeline_bytes(const shape::Alltoallw<C, D>& call) {
  const bool sends = call.sendtypes != nullptr || shape::in_place(call.sendbuf);
  return turn_bytes(has_arrays(call) && sends && call.recvtypes != nullptr);
}

template <class C, class D>
std::optional<Outline> outline(const shape::Gatherv<C, D>& call, const CommState& state) {
  return movement(Kind::gatherv, pipeline_bytes(call), call.root, state);
}
template <class C, class D>
std::optional<Outline> outline(const shape::Scatterv<C, D>& call, const CommState& state) {
  return movement(Kind::scatterv, pipeline_bytes(call), call.root, state);
}
template <class C, class D>
std::optional<Outline> outline(const shape::Alltoallv<C, D>& call, const CommState& state) {
  return movement(Kind::alltoallv, pipeline_bytes(call), 0, state);
}
template <class C, class D>
std::optional<Outline> outline(const shape::Alltoallw<C, D>& call, const CommState& state) {
  return movement(Kind::alltoallw, pipeline_bytes(call), 0, state);
}

// What of a buffer is for or from one rank.
template <class C>
core::Segment block(C count, MPI_Datatype datatype, MPI_Aint offset_bytes) {
  if (count <= 0) return {};
  return {typemap(datatype), static_cast<std::size_t>(count), offset_bytes};
}

// One end, of so many blocks, where block_of(block) gives them: one a rank, unless the end says
// otherwise.
template <class BlockOf>
core::CallEnd end_of_blocks(const core::StagedBuffer& buffer, int count, BlockOf block_of) {
  std::vector<core::Segment> blocks(static_cast<std::size_t>(count));
  std::size_t total_bytes = 0;
  auto bytes = core::Typemap::contiguous(1);
  for (int block = 0; block < count; ++block) {
    core::Segment& one = blocks[static_cast<std::size_t>(block)];
    one = block_of(block);
    if (one.count != 0 && !one.type) bytes.reset();  // the call is for the host MPI to refuse
    total_bytes += one.count == 0 || one.type ? one.size_bytes() : 1;
  }
  core::CallEnd end = call_end(buffer, 0, MPI_BYTE);
  end.segment = {std::move(bytes), total_bytes, 0};
  end.blocks = std::move(blocks);
  return end;
}
// All is for, or from, the root.
inline core::CallEnd end_at_root(const core::StagedBuffer& buffer, const CommState& state, int root,
                                 core::Segment whole) {
  return end_of_blocks(buffer, state.size,
                       [&](int rank) { return rank == root ? whole : core::Segment(); });
}

// Where blocks of one type lie by count and displacement; without that of `skipped`.
inline constexpr int kNone = -1;
template <class C, class D>
core::CallEnd end_by_counts(const core::StagedBuffer& buffer, const CommState& state,
                            const C* counts, const D* displacements, MPI_Datatype datatype,
                            int skipped) {
  const MPI_Aint extent = extent_of(datatype);
  return end_of_blocks(buffer, state.size, [&](int rank) {
    if (rank == skipped) return core::Segment();
    return block(counts[rank], datatype, static_cast<MPI_Aint>(displacements[rank]) * extent);
  });
}
template <class C, class D>
core::CallEnd end_by_types(const core::StagedBuffer& buffer, const CommState& state,
                           const C* counts, const D* displacements, const MPI_Datatype* types,
                           int skipped) {
  return end_of_blocks(buffer, state.size, [&](int rank) {
    if (rank == skipped) return core::Segment();
    return block(counts[rank], types[rank], static_cast<MPI_Aint>(displacements[rank]));
  });
}

template <class C, class D>
std::optional<coll::CollArgs> coll_args(const shape::Gatherv<C, D>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  const bool in_place = shape::in_place(call.sendbuf);
  if (!in_place)
    made.in = end_at_root(d.send, state, call.root, block(call.sendcount, call.sendtype, 0));
  made.in.of_send = true;
  if (call.root == state.rank)
    made.out = end_by_counts(d.recv, state, call.recvcounts, call.displs, call.recvtype,
                             in_place ? state.rank : kNone);
  return finished(std::move(made));
}

template <class C, class D>
std::optional<coll::CollArgs> coll_args(const shape::Scatterv<C, D>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  const bool in_place = shape::in_place(call.recvbuf);
  if (call.root == state.rank)
    made.in = end_by_counts(d.send, state, call.sendcounts, call.displs, call.sendtype,
                            in_place ? state.rank : kNone);
  made.in.of_send = true;
  if (!in_place)
    made.out = end_at_root(d.recv, state, call.root, block(call.recvcount, call.recvtype, 0));
  return finished(std::move(made));
}

// In place a rank has what it sends where it receives; its own block stays.
template <class C, class D>
std::optional<coll::CollArgs> coll_args(const shape::Alltoallv<C, D>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  made.in_place = shape::in_place(call.sendbuf);
  made.out = end_by_counts(d.recv, state, call.recvcounts, call.rdispls, call.recvtype,
                           made.in_place ? state.rank : kNone);
  made.in = made.in_place
                ? made.out
                : end_by_counts(d.send, state, call.sendcounts, call.sdispls, call.sendtype, kNone);
  made.in.of_send = !made.in_place;
  return finished(std::move(made));
}

template <class C, class D>
std::optional<coll::CollArgs> coll_args(const shape::Alltoallw<C, D>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  made.in_place = shape::in_place(call.sendbuf);
  made.out = end_by_types(d.recv, state, call.recvcounts, call.rdispls, call.recvtypes,
                          made.in_place ? state.rank : kNone);
  made.in = made.in_place
                ? made.out
                : end_by_types(d.send, state, call.sendcounts, call.sdispls, call.sendtypes, kNone);
  made.in.of_send = !made.in_place;
  return finished(std::move(made));
}

// Whether this rank's block for itself is where it receives it, which is a mistake for the host MPI
// to report. Anything else at one address may be right, and then the other ranks wait for this
// one's turn.
struct OwnBlock {
  MPI_Count count;
  MPI_Datatype datatype;
  MPI_Count place;  // by displacement of the datatype
};
inline bool overlap(const OwnBlock& sent, const OwnBlock& received) {
  return sent.count > 0 && received.count > 0 && sent.datatype == received.datatype &&
         sent.place == received.place && size_of(sent.datatype) > 0;
}
template <class C, class D>
bool overlaps(const shape::Gatherv<C, D>& call, int me) {
  return call.root == me && overlap({call.sendcount, call.sendtype, 0},
                                    {call.recvcounts[me], call.recvtype, call.displs[me]});
}
template <class C, class D>
bool overlaps(const shape::Scatterv<C, D>& call, int me) {
  return call.root == me && overlap({call.sendcounts[me], call.sendtype, call.displs[me]},
                                    {call.recvcount, call.recvtype, 0});
}
template <class C, class D>
bool overlaps(const shape::Alltoallv<C, D>& call, int me) {
  return overlap({call.sendcounts[me], call.sendtype, call.sdispls[me]},
                 {call.recvcounts[me], call.recvtype, call.rdispls[me]});
}
template <class C, class D>
bool overlaps(const shape::Alltoallw<C, D>& call, int me) {
  return overlap({call.sendcounts[me], call.sendtypes[me], call.sdispls[me]},
                 {call.recvcounts[me], call.recvtypes[me], call.rdispls[me]});
}

}  // namespace accord::shim
