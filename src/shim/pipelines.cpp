// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/pipelines.h"

#include <algorithm>
#include <climits>

#include "device/inbox.h"

namespace accord::shim {

namespace {

using Way = core::Algorithm::Way;
using Shots = core::Algorithm::Shots;

core::Algorithm asked_for(Kind kind) { return core::algorithm_choice().of(kind); }

// The ways from device to device: through regions, or straight with these as the other choice.
bool wants_regions(Way way) { return way == Way::node || way == Way::direct; }

// For two ranks all of it is no more than an exchange of shares; the kernel alone then brings it
// over.
std::size_t one_shot_bytes(Shots shots, int size) {
  constexpr std::size_t kShareOfMany = 16;
  if (shots == Shots::one) return SIZE_MAX;
  if (shots == Shots::two) return 0;
  return size == 2 ? config().one_shot_bytes : config().one_shot_bytes / kShareOfMany;
}

// Of inboxes among `size` ranks; 0: none.
std::size_t lane_bytes(int size) {
  if (size > device::kInboxRanksMax) return 0;
  const std::size_t share_bytes = config().inbox_bytes / static_cast<std::size_t>(size - 1);
  return share_bytes / device::kInboxUnitBytes * device::kInboxUnitBytes;
}

bool fits_inboxes(const node::Call& call) {
  if (node::goes_by_pairs(call.kind)) return false;
  const bool units = call.op == device::ReduceOp::none ||
                     device::kInboxUnitBytes % device::element_bytes(call.element) == 0;
  return units && call.blocks_bytes.empty() && call.block_bytes <= lane_bytes(call.size);
}

// The call as one from device to device; nothing where it is too short for that, or kernels do not
// do it.
std::optional<node::Call> exchange_of(const Outline& outline, int size) {
  const auto [way, shots, library] = asked_for(outline.kind);
  if (!devices_in_job || way == Way::staged || (way == Way::pipelined && outline.chunkable))
    return std::nullopt;
  node::Call call{
      .kind = outline.kind, .size = size, .root = outline.root, .block_bytes = outline.size_bytes};
  if (!outline.blocks_bytes.empty()) {
    call.blocks_bytes = outline.blocks_bytes;
    call.block_bytes = *std::ranges::max_element(call.blocks_bytes);
  }
  call.engine_bytes = config().engine_bytes;
  const bool long_enough =
      config().node_bytes != 0 &&
      (node::goes_by_pairs(call.kind) || outline.size_bytes >= config().node_bytes);
  call.fits_regions = wants_regions(way) || long_enough;
  if (outline.op != MPI_OP_NULL) {
    call.one_shot_bytes = one_shot_bytes(shots, size);
    call.op = device_op(outline.op);
    call.element = device_element(call.op, outline.datatype, outline.element_bytes);
    if (call.op == device::ReduceOp::none || call.element == device::Element::none)
      return std::nullopt;
  }
  if (way != Way::ccl && !call.fits_regions && !fits_inboxes(call)) return std::nullopt;
  return call;
}

// Libraries reduce in an order of their own.
ccl::Library* library_for(const Outline& outline) {
  const bool in_rank_order = wants_rank_order && outline.op != MPI_OP_NULL;
  return in_rank_order ? nullptr : asked_for(outline.kind).library;
}

// Whether an end is worth a way from device to device. Where all ranks know the size, it is.
bool is_long(const core::PipelineEnd& end, const core::Pipeline& pipeline) {
  if (!pipeline.exchange || !node::goes_by_pairs(pipeline.exchange->kind)) return true;
  return std::ranges::any_of(end.blocks, [](const core::Segment& block) {
    return block.size_bytes() >= config().node_bytes;
  });
}

}  // namespace

core::Key key_of(const Outline& outline) {
  return {static_cast<std::uint32_t>(outline.kind),
          outline.op == MPI_OP_NULL ? 0 : canonical_op(outline.op),
          outline.datatype == MPI_DATATYPE_NULL ? 0 : canonical_type(outline.datatype),
          outline.size_bytes, hash_of(outline.blocks_bytes)};
}

std::uint64_t hash_of(const std::vector<std::size_t>& blocks_bytes) noexcept {
  std::uint64_t hash = 0;
  for (const std::size_t bytes : blocks_bytes) hash = (hash ^ bytes) * 1099511628211ull + 1;
  return hash;
}

bool asks_for_host(Kind kind) {
  const Way way = asked_for(kind).way;
  return way == Way::staged || way == Way::pipelined;
}

bool worth_chunks(Kind kind, std::size_t size_bytes) {
  if (asks_for_host(kind)) return asked_for(kind).way == Way::pipelined;
  return config().pipeline_bytes != 0 && size_bytes >= config().pipeline_bytes;
}

bool has_ways(const Outline& outline, const CommState& state) {
  return outline.chunkable || exchange_of(outline, state.size);
}

core::Pipeline common_pipeline(const Outline& outline, const CommState& state, MPI_Comm comm) {
  core::Pipeline made;
  made.key = key_of(outline);
  made.size_bytes = outline.size_bytes;
  // A chunk is a whole number of elements and its count fits an int.
  const std::size_t wanted_bytes = std::min<std::size_t>(config().chunk_bytes, INT_MAX);
  made.chunk_bytes =
      std::max<std::size_t>(1, wanted_bytes / outline.element_bytes) * outline.element_bytes;
  made.issue_vote = [comm](const core::Vote& mine, core::Vote& all, core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        host::Iallreduce(mine.words.data(), all.words.data(), static_cast<int>(mine.words.size()),
                         MPI_INT64_T, MPI_MIN, comm, &request);
    bits = to_bits(request);
    return code;
  };
  made.exchange = exchange_of(outline, state.size);
  const Way way = asked_for(outline.kind).way;
  made.library = library_for(outline);
  made.in_company = program_has_threads;
  const std::size_t direct_bytes = config().direct_bytes;
  // Pair by pair there are no inboxes for short messages, and lanes of a region take twice the time
  // of a buffer that is reached directly.
  const std::size_t pair_bytes = std::min<std::size_t>(direct_bytes, config().node_bytes);
  made.lend_bytes = way == Way::direct ? 1 : way == Way::node ? 0 : pair_bytes;
  const bool long_enough =
      made.exchange && direct_bytes != 0 && made.exchange->block_bytes >= direct_bytes;
  made.tries_direct = way == Way::direct || (way != Way::node && long_enough);
  made.rank = state.rank;
  made.region_bytes = config().region_bytes;
  if (made.exchange && !wants_regions(way) && fits_inboxes(*made.exchange))
    made.lane_bytes = lane_bytes(state.size);
  made.inbox_calls = way == Way::inbox ? 1 : static_cast<std::uint64_t>(config().inbox_calls);
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
    any_device = any_device || (end->runtime != nullptr && is_long(*end, made));
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
  end.memory = buffer.where();
  end.on_device = buffer.is_staged() && buffer.where().kind == device::MemoryKind::device;
  return end;
}

}  // namespace accord::shim
