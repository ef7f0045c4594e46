// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/pipelines.h"

#include <algorithm>
#include <climits>

namespace accord::shim {

namespace {

// The call as one through the exchange regions; nothing where it is too short, or kernels do not do
// it.
std::optional<node::Call> exchange_of(Kind kind, std::size_t size_bytes, std::size_t element_bytes,
                                      MPI_Op op, MPI_Datatype datatype, int root, int size) {
  if (node_from_bytes == 0 || size_bytes < node_from_bytes) return std::nullopt;
  node::Call call{.kind = kind, .size = size, .root = root, .block_bytes = size_bytes};
  if (op == MPI_OP_NULL) return call;
  // For two ranks all of it is no more than an exchange of shares; the kernel alone then brings it
  // over.
  constexpr std::size_t kShareOfMany = 16;
  call.one_shot_bytes =
      size == 2 ? config().one_shot_bytes : config().one_shot_bytes / kShareOfMany;
  call.op = device_op(op);
  call.element = device_element(call.op, datatype, element_bytes);
  if (call.op == device::ReduceOp::none || call.element == device::Element::none)
    return std::nullopt;
  return call;
}

}  // namespace

core::Pipeline common_pipeline(Kind kind, std::size_t size_bytes, std::size_t element_bytes,
                               MPI_Op op, MPI_Datatype datatype, int root, const CommState& state,
                               MPI_Comm comm) {
  core::Pipeline made;
  made.key = {static_cast<std::uint32_t>(kind), op == MPI_OP_NULL ? 0 : canonical_op(op),
              datatype == MPI_DATATYPE_NULL ? 0 : canonical_type(datatype), size_bytes};
  made.size_bytes = size_bytes;
  // A chunk is a whole number of elements and its count fits an int.
  const std::size_t wanted_bytes = std::min<std::size_t>(config().chunk_bytes, INT_MAX);
  made.chunk_bytes = std::max<std::size_t>(1, wanted_bytes / element_bytes) * element_bytes;
  made.issue_vote = [comm](const core::Vote& mine, core::Vote& all, core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        host::Iallreduce(mine.words.data(), all.words.data(), static_cast<int>(mine.words.size()),
                         MPI_INT64_T, MPI_MIN, comm, &request);
    bits = to_bits(request);
    return code;
  };
  made.exchange = exchange_of(kind, size_bytes, element_bytes, op, datatype, root, state.size);
  made.rank = state.rank;
  made.issue_allgather = [comm](const void* mine, void* all, std::size_t bytes,
                                core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Iallgather(mine, static_cast<int>(bytes), MPI_BYTE, all,
                                      static_cast<int>(bytes), MPI_BYTE, comm, &request);
    bits = to_bits(request);
    return code;
  };
  return made;
}

std::optional<core::Pipeline> finished(core::Pipeline made) {
  bool any_device = false;
  for (const core::PipelineEnd* end : {&made.in, &made.out}) {
    if (end->segment.count != 0 && !end->segment.type) return std::nullopt;
    any_device = any_device || end->runtime != nullptr;
  }
  if (!made.exchange && !made.issue_chunk) return std::nullopt;
  made.ballot = any_device ? core::Ballot::device : core::Ballot::host;
  return made;
}

core::PipelineEnd pipeline_end(const core::StagedBuffer& buffer, std::size_t count,
                               MPI_Datatype datatype) {
  core::PipelineEnd end;
  end.user = buffer.user();
  end.segment = {typemap(datatype), count, 0};
  end.shadowed = buffer.is_staged() && buffer.where().runtime == nullptr;
  end.runtime = buffer.where().runtime;
  end.device = buffer.where().device;
  end.on_device = buffer.is_staged() && buffer.where().kind == device::MemoryKind::device;
  return end;
}

}  // namespace accord::shim
