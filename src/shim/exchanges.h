// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The collectives that have no chunked form over the host MPI but go through the exchange regions
// of a node: what one rank sends another is a block, equal on all ranks.
#pragma once

#include <mpi.h>

#include "shim/coll_args.h"

namespace accord::shim {

// What this rank sends each other one, which it has in the receive buffer where it is in place.
template <class Call>
std::size_t sent_bytes(const Call& call) {
  return shape::in_place(call.sendbuf) ? long_bytes(call.recvcount, call.recvtype)
                                       : long_bytes(call.sendcount, call.sendtype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Allgather<C>& call) {
  return sent_bytes(call);
}
template <class C>
std::size_t pipeline_bytes(const shape::Alltoall<C>& call) {
  return sent_bytes(call);
}
template <class C>
std::size_t pipeline_bytes(const shape::Gather<C>& call) {
  return sent_bytes(call);
}
template <class C>
std::size_t pipeline_bytes(const shape::Scatter<C>& call) {
  return shape::in_place(call.recvbuf) ? long_bytes(call.sendcount, call.sendtype)
                                       : long_bytes(call.recvcount, call.recvtype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Reduce_scatter_block<C>& call) {
  return long_bytes(call.recvcount, call.datatype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Scan<C>& call) {
  return long_bytes(call.count, call.datatype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Exscan<C>& call) {
  return long_bytes(call.count, call.datatype);
}

inline std::size_t blocks(const CommState& state, MPI_Count count) {
  return static_cast<std::size_t>(state.size) * static_cast<std::size_t>(count);
}

template <class C>
std::optional<Outline> outline(const shape::Allgather<C>& call, const CommState& state) {
  return movement(Kind::allgather, pipeline_bytes(call), 0, state);
}
template <class C>
std::optional<Outline> outline(const shape::Alltoall<C>& call, const CommState& state) {
  return movement(Kind::alltoall, pipeline_bytes(call), 0, state);
}
template <class C>
std::optional<Outline> outline(const shape::Gather<C>& call, const CommState& state) {
  return movement(Kind::gather, pipeline_bytes(call), call.root, state);
}
template <class C>
std::optional<Outline> outline(const shape::Scatter<C>& call, const CommState& state) {
  return movement(Kind::scatter, pipeline_bytes(call), call.root, state);
}
template <class C>
std::optional<Outline> outline(const shape::Reduce_scatter_block<C>& call, const CommState& state) {
  return reduction(Kind::reduce_scatter_block, pipeline_bytes(call), call.op, call.datatype, 0,
                   state);
}
template <class C>
std::optional<Outline> outline(const shape::Scan<C>& call, const CommState& state) {
  return reduction(Kind::scan, pipeline_bytes(call), call.op, call.datatype, 0, state);
}
template <class C>
std::optional<Outline> outline(const shape::Exscan<C>& call, const CommState& state) {
  return reduction(Kind::exscan, pipeline_bytes(call), call.op, call.datatype, 0, state);
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Allgather<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  made.in_place = shape::in_place(call.sendbuf);
  made.out = call_end(d.recv, blocks(state, call.recvcount), call.recvtype);
  made.in = made.in_place
                ? made.out
                : call_end(d.send, static_cast<std::size_t>(call.sendcount), call.sendtype);
  made.in.of_send = !made.in_place;
  return finished(std::move(made));
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Alltoall<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  const bool in_place = shape::in_place(call.sendbuf);
  made.out = call_end(d.recv, blocks(state, call.recvcount), call.recvtype);
  made.in = in_place ? made.out : call_end(d.send, blocks(state, call.sendcount), call.sendtype);
  made.in.of_send = !in_place;
  return finished(std::move(made));
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Gather<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  made.in_place = shape::in_place(call.sendbuf);
  if (!made.in_place)
    made.in = call_end(d.send, static_cast<std::size_t>(call.sendcount), call.sendtype);
  made.in.of_send = true;
  if (call.root == state.rank)
    made.out = call_end(d.recv, blocks(state, call.recvcount), call.recvtype);
  return finished(std::move(made));
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Scatter<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  made.in_place = shape::in_place(call.recvbuf);
  if (call.root == state.rank)
    made.in = call_end(d.send, blocks(state, call.sendcount), call.sendtype);
  made.in.of_send = true;
  if (!made.in_place)
    made.out = call_end(d.recv, static_cast<std::size_t>(call.recvcount), call.recvtype);
  return finished(std::move(made));
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Reduce_scatter_block<C>& call,
                                        const Description& d, const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  const bool in_place = shape::in_place(call.sendbuf);
  made.in = call_end(in_place ? d.recv : d.send, blocks(state, call.recvcount), call.datatype);
  made.in.of_send = !in_place;
  made.out = call_end(d.recv, static_cast<std::size_t>(call.recvcount), call.datatype);
  return finished(std::move(made));
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Scan<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  return finished(reduction_args(*sketch, call, true, d, state));
}

// Rank 0 receives nothing: what lies in its receive buffer stays.
template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Exscan<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  return finished(reduction_args(*sketch, call, state.rank > 0, d, state));
}

}  // namespace accord::shim
