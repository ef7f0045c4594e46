// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/coll_args.h"

#include <algorithm>
#include <climits>

#include "coll/inter/net_transport.h"
#include "coll/pairs/bundles.h"
#include "core/placement.h"
#include "shim/comm_wire.h"
#include "shim/net_messages.h"

namespace accord::shim {

namespace {

coll::DeviceWays ways_of(const Outline& outline, const node::Call& call) {
  const auto element_bytes =
      call.op == device::ReduceOp::none ? 1 : device::element_bytes(call.element);
  return coll::device_ways({.kind = call.kind,
                            .ranks = call.size,
                            .size_bytes = outline.size_bytes,
                            .longest_bytes = call.block_bytes,
                            .element_bytes = element_bytes,
                            .equal_blocks = call.blocks_bytes.empty(),
                            .can_be_cut = outline.chunkable},
                           outline.asked);
}

// The call as one from device to device; nothing where it is too short for that, or kernels do not
// do it.
std::optional<node::Call> exchange_of(const Outline& outline, int size, coll::DeviceWays& ways) {
  if (!job.has_devices) return std::nullopt;
  node::Call call{
      .kind = outline.kind, .size = size, .root = outline.root, .block_bytes = outline.size_bytes};
  if (!outline.blocks_bytes.empty()) {
    call.blocks_bytes = outline.blocks_bytes;
    call.block_bytes = *std::ranges::max_element(call.blocks_bytes);
  }
  if (outline.op != MPI_OP_NULL) {
    call.op = device_op(outline.op);
    call.element = device_element(call.op, outline.datatype, outline.element_bytes);
    if (call.op == device::ReduceOp::none || call.element == device::Element::none)
      return std::nullopt;
  }
  ways = ways_of(outline, call);
  if (!ways.any()) return std::nullopt;
  call.fits_regions = ways.regions;
  call.one_shot_bytes = ways.one_shot_bytes;
  call.spread_bytes = ways.spread_bytes;
  call.engine_bytes = config().engine_bytes;
  return call;
}

// The host MPI reduces between the nodes, elements that lie as kernels leave them.
void prepare_two_levels(coll::CollArgs& made, const Outline& outline) {
  if (outline.op == MPI_OP_NULL) return;
  const auto type = typemap(outline.datatype);
  if (job.wants_rank_order || !type || !type->dense()) {
    made.ways.leaders_max = 0;
    return;
  }
  made.host.reduce_local = [op = outline.op, datatype = outline.datatype,
                            element_bytes = outline.element_bytes](const void* in, void* inout,
                                                                   std::size_t length_bytes) {
    return host::Reduce_local(in, inout, static_cast<int>(length_bytes / element_bytes), datatype,
                              op);
  };
}

std::size_t longest_block_of(const core::CallEnd& end) {
  std::size_t longest_bytes = 0;
  for (const core::Segment& block : end.blocks)
    longest_bytes = std::max(longest_bytes, block.size_bytes());
  return longest_bytes;
}

// Whether an end is worth a way from device to device. Where all ranks know the size, it is.
core::Ballot ballot_of(const core::CallEnd& end, const coll::CollArgs& args) {
  using core::Ballot;
  if (!args.exchange || !node::goes_by_pairs(args.exchange->kind)) return Ballot::device;
  if (const std::size_t longest_bytes = longest_block_of(end); longest_bytes >= config().node_bytes)
    return longest_bytes >= args.ways.far_pair_bytes ? Ballot::device : Ballot::device_near;
  if (!end.present()) return Ballot::host;
  return coll::Bundles::take_all(end, args) ? Ballot::device_shortest : Ballot::device_short;
}

}  // namespace

core::Key key_of(const Outline& outline) {
  return {static_cast<std::uint32_t>(outline.kind),
          outline.op == MPI_OP_NULL ? 0 : canonical_op(outline.op),
          outline.datatype == MPI_DATATYPE_NULL ? 0 : canonical_type(outline.datatype),
          outline.size_bytes, hash_of(outline.blocks_bytes)};
}

std::uint64_t hash_of(const std::vector<std::size_t>& blocks_bytes) {
  std::uint64_t hash = 0;
  for (const std::size_t bytes : blocks_bytes) hash = (hash ^ bytes) * 1099511628211ull + 1;
  return hash;
}

bool has_ways(const Outline& outline, const CommState& state) {
  coll::DeviceWays ways;
  return outline.chunkable || exchange_of(outline, state.size, ways);
}

coll::CollArgs common_args(const Outline& outline, const CommState& state, MPI_Comm comm) {
  coll::CollArgs made;
  made.kind = outline.kind;
  made.key = key_of(outline);
  made.asked_by = coll::reason::of(outline.asked.origin);
  made.size_bytes = outline.size_bytes;
  // A chunk is a whole number of elements and its count fits an int.
  const std::size_t wanted_bytes = std::min<std::size_t>(config().chunk_bytes, INT_MAX);
  made.chunk_bytes =
      std::max<std::size_t>(1, wanted_bytes / outline.element_bytes) * outline.element_bytes;
  made.parcel_bytes = config().parcel_bytes == 0
                          ? core::Placement::kParcelBytesAuto
                          : std::min<std::size_t>(config().parcel_bytes, INT_MAX);
  made.host.issue_vote = [comm](const core::Vote& mine, core::Vote& all, core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        host::Iallreduce(mine.words.data(), all.words.data(), static_cast<int>(mine.words.size()),
                         MPI_INT64_T, MPI_MIN, comm, &request);
    bits = to_bits(request);
    return code;
  };
  made.exchange = exchange_of(outline, state.size, made.ways);
  // Libraries reduce in an order of their own.
  if (job.wants_rank_order && outline.op != MPI_OP_NULL) made.ways.library = nullptr;
  made.in_company = job.has_threads;
  made.rank = state.rank;
  prepare_two_levels(made, outline);
  if (has_wires() && !state.mixed_worlds) {
    made.host.issue_wire = [comm, size = state.size](std::shared_ptr<core::Wire>& wire,
                                                     core::HostRequest& bits) {
      return issue_wire(comm, size, wire, bits);
    };
    if (messaging.net_joined) {
      made.host.make_transport = [](unsigned design, core::Wire& wire) {
        return std::make_unique<coll::NetTransport>(
            net_mail(), *net::design_at(design), [&wire](int rank) { return wire.job_rank(rank); });
      };
      made.host.has_idle_core = has_idle_core;
    }
    made.host.placement = [comm, size = state.size] { return placement_of(comm, size); };
  }
  made.region_bytes = config().region_bytes;
  made.host.issue_allgather = [comm](const void* mine, void* all, std::size_t bytes,
                                     core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Iallgather(mine, static_cast<int>(bytes), MPI_BYTE, all,
                                      static_cast<int>(bytes), MPI_BYTE, comm, &request);
    bits = to_bits(request);
    return code;
  };
  return made;
}

std::optional<coll::CollArgs> finished(coll::CollArgs made) {
  made.ballot = core::Ballot::host;
  for (const core::CallEnd* end : {&made.in, &made.out}) {
    if (end->segment.count != 0 && !end->segment.type) return std::nullopt;
    if (end->runtime != nullptr) made.ballot = std::max(made.ballot, ballot_of(*end, made));
  }
  if (!made.exchange && !made.host.issue_chunk) return std::nullopt;
  return made;
}

core::CallEnd call_end(const core::StagedBuffer& buffer, std::size_t count, MPI_Datatype datatype) {
  core::CallEnd end;
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
