// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which collectives may be cut into chunks, and how: reductions by elements, a broadcast as the
// bytes of its packed form (its datatype may differ by rank). Whether a call is eligible depends
// only on what is equal on all ranks; whether it is then cut is voted.
#pragma once

#include <mpi.h>

#include <optional>

#include "shim/canonical.h"
#include "shim/shapes.h"

namespace accord::shim {

enum class Pipelined : std::uint32_t { bcast = 1, reduce, allreduce };

// Bytes of one element, or 0. Remembers this thread's last predefined type, whose handle is never
// reused: host traffic asks this of every reduction and broadcast.
inline MPI_Count size_of(MPI_Datatype datatype) noexcept {
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
std::size_t long_bytes(C count, MPI_Datatype datatype) noexcept {
  const std::size_t least_bytes = config().pipeline_bytes;
  if (count <= 0 || least_bytes == 0 || datatype == MPI_DATATYPE_NULL) return 0;
  const MPI_Count size = size_of(datatype);
  if (size <= 0) return 0;
  const std::size_t total_bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
  return total_bytes >= least_bytes ? total_bytes : 0;
}

template <class Shape>
std::size_t pipeline_bytes(const Shape&) noexcept {
  return 0;
}
template <class C>
std::size_t pipeline_bytes(const shape::Bcast<C>& call) noexcept {
  return long_bytes(call.count, call.datatype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Reduce<C>& call) noexcept {
  return long_bytes(call.count, call.datatype);
}
template <class C>
std::size_t pipeline_bytes(const shape::Allreduce<C>& call) noexcept {
  return long_bytes(call.count, call.datatype);
}

// Parts shared by all pipelines: key, ballot, vote.
core::Pipeline common_pipeline(Pipelined kind, std::size_t size_bytes, std::size_t element_bytes,
                               MPI_Op op, MPI_Datatype datatype, MPI_Comm comm);

// One end of the call: `count` elements of a buffer that a Description knows.
core::PipelineEnd pipeline_end(const core::StagedBuffer& buffer, std::size_t count,
                               MPI_Datatype datatype);

template <class Shape>
std::optional<core::Pipeline> pipeline(const Shape&, const Description&, const CommState&) {
  return std::nullopt;
}

template <class C>
std::optional<core::Pipeline> pipeline(const shape::Bcast<C>& call, const Description& d,
                                       const CommState& state) {
  const std::size_t size_bytes = pipeline_bytes(call);
  if (size_bytes == 0 || state.inter || state.size == 1) return std::nullopt;
  core::Pipeline made =
      common_pipeline(Pipelined::bcast, size_bytes, 1, MPI_OP_NULL, MPI_DATATYPE_NULL, call.comm);
  core::PipelineEnd& end = call.root == state.rank ? made.in : made.out;
  end = pipeline_end(d.recv, static_cast<std::size_t>(call.count), call.datatype);
  made.ballot = end.runtime != nullptr ? core::Ballot::device : core::Ballot::host;
  made.issue_chunk = [root = call.root, comm = call.comm](const void* in, void* out,
                                                          std::size_t length_bytes,
                                                          core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    void* buffer = in != nullptr ? const_cast<void*>(in) : out;
    const int code =
        host::Ibcast(buffer, static_cast<int>(length_bytes), MPI_BYTE, root, comm, &request);
    bits = to_bits(request);
    return code;
  };
  return made;
}

// Reductions: cut only for predefined operations on types without gaps, both equal on all ranks.
inline std::size_t reducible_element_bytes(MPI_Op op, MPI_Datatype datatype) {
  if (canonical_op(op) == 0 || canonical_type(datatype) == 0) return 0;
  const auto type = typemap(datatype);
  return type && type->dense() ? type->size_bytes() : 0;
}

template <class Call>
std::optional<core::Pipeline> reduction_pipeline(Pipelined kind, const Call& call, bool has_out,
                                                 const Description& d, const CommState& state) {
  const std::size_t size_bytes = pipeline_bytes(call);
  if (size_bytes == 0 || state.inter || state.size == 1) return std::nullopt;
  const std::size_t element_bytes = reducible_element_bytes(call.op, call.datatype);
  if (element_bytes == 0) return std::nullopt;
  core::Pipeline made =
      common_pipeline(kind, size_bytes, element_bytes, call.op, call.datatype, call.comm);
  const auto count = static_cast<std::size_t>(call.count);
  made.in = pipeline_end(shape::in_place(call.sendbuf) ? d.recv : d.send, count, call.datatype);
  if (has_out) made.out = pipeline_end(d.recv, count, call.datatype);
  const bool any = made.in.runtime != nullptr || made.out.runtime != nullptr;
  made.ballot = any ? core::Ballot::device : core::Ballot::host;
  return made;
}

template <class C>
std::optional<core::Pipeline> pipeline(const shape::Allreduce<C>& call, const Description& d,
                                       const CommState& state) {
  auto made = reduction_pipeline(Pipelined::allreduce, call, true, d, state);
  if (!made) return made;
  const auto element_bytes = reducible_element_bytes(call.op, call.datatype);
  made->issue_chunk = [call, element_bytes](const void* in, void* out, std::size_t length_bytes,
                                            core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Iallreduce(in == out ? MPI_IN_PLACE : in, out,
                                      static_cast<int>(length_bytes / element_bytes), call.datatype,
                                      call.op, call.comm, &request);
    bits = to_bits(request);
    return code;
  };
  return made;
}

template <class C>
std::optional<core::Pipeline> pipeline(const shape::Reduce<C>& call, const Description& d,
                                       const CommState& state) {
  const bool is_root = call.root == state.rank;
  auto made = reduction_pipeline(Pipelined::reduce, call, is_root, d, state);
  if (!made) return made;
  const auto element_bytes = reducible_element_bytes(call.op, call.datatype);
  made->issue_chunk = [call, element_bytes](const void* in, void* out, std::size_t length_bytes,
                                            core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Ireduce(in == out ? MPI_IN_PLACE : in, out,
                                   static_cast<int>(length_bytes / element_bytes), call.datatype,
                                   call.op, call.root, call.comm, &request);
    bits = to_bits(request);
    return code;
  };
  return made;
}

}  // namespace accord::shim
