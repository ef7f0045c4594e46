// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which collectives may go another way than one call of the host MPI, and how: cut into chunks of
// it (reductions by elements, a broadcast as the bytes of its packed form, since its datatype may
// differ by rank), or through the exchange regions of a node. Whether a call is eligible depends
// only on what is equal on all ranks; which way it then goes is voted.
#pragma once

#include <mpi.h>

#include <optional>
#include <type_traits>
#include <vector>

#include "coll/select/selection.h"
#include "shim/canonical.h"
#include "shim/shapes.h"

namespace accord::shim {

using node::Kind;

// Bytes of one element, or 0. Remembers this thread's last predefined type, whose handle is never
// reused: host traffic asks this of every reduction and broadcast.
inline MPI_Count size_of(MPI_Datatype datatype) {
  static thread_local MPI_Datatype known = MPI_DATATYPE_NULL;
  static thread_local MPI_Count known_size = 0;
  if (datatype == known) return known_size;
  MPI_Count size = 0;
  if (host::Type_size_x(datatype, &size) != MPI_SUCCESS || size < 0) return 0;
  if (is_named(datatype)) {
    known = datatype;
    known_size = size;
  }
  return size;
}

// Total bytes where the call is long enough to be worth a vote, else 0. Cheap: called for every
// such call.
template <class C>
std::size_t long_bytes(C count, MPI_Datatype datatype) {
  const std::size_t least_bytes = job.votes_from_bytes;
  if (count <= 0 || least_bytes == 0 || datatype == MPI_DATATYPE_NULL) return 0;
  const MPI_Count size = size_of(datatype);
  if (size <= 0) return 0;
  const std::size_t total_bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
  return total_bytes >= least_bytes ? total_bytes : 0;
}

// No other way than the host MPI's: a type of its own says so at compile time.
template <class Shape>
std::integral_constant<std::size_t, 0> pipeline_bytes(const Shape&) {
  return {};
}
template <class C>
std::size_t pipeline_bytes(const shape::Bcast<C>& call) {
  return long_bytes(call.count, call.datatype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Reduce<C>& call) {
  return long_bytes(call.count, call.datatype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Allreduce<C>& call) {
  return long_bytes(call.count, call.datatype);
}

// What of a call is equal on all ranks, where it may go another way at all.
struct Outline {
  Kind kind;
  std::size_t size_bytes;         // of a block, see node::Call
  std::size_t element_bytes = 1;  // 1: moves bytes only, the datatype may differ by rank
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  int root = 0;  // 0 where there is none
  coll::Asked asked = {};
  bool chunkable = false;  // chunks of the host MPI's call are one of the ways
  // By rank, where blocks differ; size_bytes then is their mean.
  std::vector<std::size_t> blocks_bytes = {};
};

// Tells calls whose blocks differ by rank apart; 0 for others.
std::uint64_t hash_of(const std::vector<std::size_t>& blocks_bytes);

core::Key key_of(const Outline& outline);

// Whether such calls vote on the way they go.
bool has_ways(const Outline& outline, const CommState& state);

// Parts shared by all calls: key, vote, and the exchange where one can be.
coll::CollArgs common_args(const Outline& outline, const CommState& state, MPI_Comm comm);

// Fills in the ballot; nothing where an end has no layout or no way is left: the host MPI shall
// have the call.
std::optional<coll::CollArgs> finished(coll::CollArgs made);

// Whether ranks of this communicator may move data among themselves, from or to this root.
inline bool among_ranks(const CommState& state, int root = 0) {
  return !state.inter && !state.mixed_worlds && state.size > 1 && root >= 0 && root < state.size;
}

// One end of the call: `count` elements of a buffer that a Description knows.
core::CallEnd call_end(const core::StagedBuffer& buffer, std::size_t count, MPI_Datatype datatype);

// Nothing where the call is for the host MPI alone.
inline std::optional<Outline> movement(Kind kind, std::size_t size_bytes, int root,
                                       const CommState& state) {
  if (size_bytes == 0 || !among_ranks(state, root)) return std::nullopt;
  const auto sources = coll::sources_with(state.algorithms.get());
  return Outline{.kind = kind,
                 .size_bytes = size_bytes,
                 .root = root,
                 .asked = coll::asked_for(sources, kind, state.size, size_bytes)};
}
// Reductions: only predefined operations on predefined types, both equal on all ranks. Packed,
// since kernels take elements without gaps; the host MPI, which gets chunks in the user's datatype,
// only where that is the same.
inline std::optional<Outline> reduction(Kind kind, std::size_t size_bytes, MPI_Op op,
                                        MPI_Datatype datatype, int root, const CommState& state) {
  std::optional<Outline> made = movement(kind, size_bytes, root, state);
  if (!made || canonical_op(op) == 0 || canonical_type(datatype) == 0) return std::nullopt;
  const auto type = typemap(datatype);
  if (!type || type->size_bytes() == 0) return std::nullopt;
  made->element_bytes = type->size_bytes();
  made->op = op;
  made->datatype = datatype;
  // The host MPI shall refuse what MPI does not define as the program's own call.
  made->chunkable = coll::can_be_cut(kind) && type->dense() &&
                    may_be_defined(op, datatype, made->element_bytes) &&
                    coll::worth_chunks(made->size_bytes, made->asked);
  return made;
}

template <class Shape>
std::optional<Outline> outline(const Shape&, const CommState&) {
  return std::nullopt;
}
template <class C>
std::optional<Outline> outline(const shape::Bcast<C>& call, const CommState& state) {
  auto made = movement(Kind::bcast, pipeline_bytes(call), call.root, state);
  if (made) made->chunkable = coll::worth_chunks(made->size_bytes, made->asked);
  return made;
}
template <class C>
std::optional<Outline> outline(const shape::Allreduce<C>& call, const CommState& state) {
  return reduction(Kind::allreduce, pipeline_bytes(call), call.op, call.datatype, 0, state);
}
template <class C>
std::optional<Outline> outline(const shape::Reduce<C>& call, const CommState& state) {
  return reduction(Kind::reduce, pipeline_bytes(call), call.op, call.datatype, call.root, state);
}

template <class Shape>
std::optional<coll::CollArgs> coll_args(const Shape&, const Description&, const CommState&) {
  return std::nullopt;
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Bcast<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = common_args(*sketch, state, call.comm);
  core::CallEnd& end = call.root == state.rank ? made.in : made.out;
  end = call_end(d.recv, static_cast<std::size_t>(call.count), call.datatype);
  if (!sketch->chunkable) return finished(std::move(made));
  made.host.issue_chunk = [root = call.root, comm = call.comm](const void* in, void* out,
                                                               std::size_t length_bytes,
                                                               core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    void* buffer = in != nullptr ? const_cast<void*>(in) : out;
    const int code =
        host::Ibcast(buffer, static_cast<int>(length_bytes), MPI_BYTE, root, comm, &request);
    bits = to_bits(request);
    return code;
  };
  return finished(std::move(made));
}

template <class Call>
coll::CollArgs reduction_args(const Outline& sketch, const Call& call, bool has_out,
                              const Description& d, const CommState& state) {
  coll::CollArgs made = common_args(sketch, state, call.comm);
  const auto count = static_cast<std::size_t>(call.count);
  made.in = call_end(shape::in_place(call.sendbuf) ? d.recv : d.send, count, call.datatype);
  made.in.of_send = !shape::in_place(call.sendbuf);
  if (has_out) made.out = call_end(d.recv, count, call.datatype);
  return made;
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Allreduce<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = reduction_args(*sketch, call, true, d, state);
  if (!sketch->chunkable) return finished(std::move(made));
  made.host.issue_chunk = [call, element_bytes = sketch->element_bytes](const void* in, void* out,
                                                                        std::size_t length_bytes,
                                                                        core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Iallreduce(in == out ? MPI_IN_PLACE : in, out,
                                      static_cast<int>(length_bytes / element_bytes), call.datatype,
                                      call.op, call.comm, &request);
    bits = to_bits(request);
    return code;
  };
  return finished(std::move(made));
}

template <class C>
std::optional<coll::CollArgs> coll_args(const shape::Reduce<C>& call, const Description& d,
                                        const CommState& state) {
  const auto sketch = outline(call, state);
  if (!sketch) return std::nullopt;
  coll::CollArgs made = reduction_args(*sketch, call, call.root == state.rank, d, state);
  if (!sketch->chunkable) return finished(std::move(made));
  made.host.issue_chunk = [call, element_bytes = sketch->element_bytes](const void* in, void* out,
                                                                        std::size_t length_bytes,
                                                                        core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Ireduce(in == out ? MPI_IN_PLACE : in, out,
                                   static_cast<int>(length_bytes / element_bytes), call.datatype,
                                   call.op, call.root, call.comm, &request);
    bits = to_bits(request);
    return code;
  };
  return finished(std::move(made));
}

}  // namespace accord::shim
