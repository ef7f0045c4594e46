// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/pipelines.h"

#include <algorithm>
#include <climits>

namespace accord::shim {

core::Pipeline common_pipeline(Pipelined kind, std::size_t size_bytes, std::size_t element_bytes,
                               MPI_Op op, MPI_Datatype datatype, MPI_Comm comm) {
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
  return end;
}

}  // namespace accord::shim
