// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which collectives of the model shim may go in chunks, through exchange regions or inboxes, and
// how: what src/shim/{coll_args,exchanges}.h do over a real MPI.
#include <algorithm>
#include <functional>

#include "fake_device.h"
#include "model_shim.h"

namespace accord::model {
namespace {

// Only the two ranks of a pair know how much they exchange.
bool has_sizes_by_pair(Collective kind) {
  return kind == Collective::gatherv || kind == Collective::scatterv ||
         kind == Collective::alltoallv;
}

// A call as coll sees it: what this rank puts in and gets out (no elements:
// nothing), and the bytes that are equal on all ranks.
struct Ends {
  Buffer in;
  Buffer out;
  bool in_is_recv = false;
  bool contributes_in_place = false;  // as node::Geometry means it
  std::size_t block_bytes = 0;
};

Ends ends_of(const CollectiveArgs& args, std::size_t rank, std::size_t members) {
  const bool is_root = rank == static_cast<std::size_t>(args.root);
  Ends ends;
  ends.in_is_recv = args.in_place;
  ends.in = args.in_place ? args.recv : args.send;
  ends.out = args.recv;
  ends.block_bytes = ends.in.size_bytes();
  const bool root_in_place = is_root && args.in_place;
  if (has_sizes_by_pair(args.kind)) ends.block_bytes = 1;  // which no rank knows of all
  switch (args.kind) {
    case Collective::bcast:
      ends.in_is_recv = true;
      ends.block_bytes = args.recv.size_bytes();
      ends.in = is_root ? args.recv : Buffer{};
      if (is_root) ends.out = {};
      break;
    case Collective::reduce:
      ends.in_is_recv = root_in_place;
      ends.in = root_in_place ? args.recv : args.send;
      ends.block_bytes = ends.in.size_bytes();
      if (!is_root) ends.out = {};
      break;
    case Collective::allgather:
      ends.contributes_in_place = args.in_place;
      ends.block_bytes = args.recv.size_bytes() / members;
      break;
    case Collective::alltoall:
      ends.block_bytes = args.recv.size_bytes() / members;
      break;
    case Collective::reduce_scatter_block:
      ends.block_bytes /= members;
      if (args.in_place) ends.out.count /= members;
      break;
    case Collective::exscan:
      if (rank == 0) ends.out = {};
      break;
    case Collective::reduce_scatter:
      ends.block_bytes /= members;  // the mean
      ends.out.count =
          args.blocks_bytes[rank] == 0 ? 0 : args.blocks_bytes[rank] / args.recv.type.block_bytes;
      break;
    case Collective::allgatherv:
      ends.contributes_in_place = args.in_place;
      ends.block_bytes = args.recv.size_bytes() / members;
      break;
    case Collective::gatherv:
      ends.in_is_recv = false;
      ends.in = root_in_place ? Buffer{} : args.send;
      if (!is_root) ends.out = {};
      break;
    case Collective::scatterv:
      ends.in_is_recv = false;
      ends.in = is_root ? args.send : Buffer{};
      if (root_in_place) ends.out = {};
      break;
    case Collective::gather:
      ends.contributes_in_place = root_in_place;
      ends.in_is_recv = false;
      ends.in = root_in_place ? Buffer{} : args.send;
      ends.block_bytes = root_in_place ? args.recv.size_bytes() / members : args.send.size_bytes();
      if (!is_root) ends.out = {};
      break;
    case Collective::scatter:
      ends.contributes_in_place = root_in_place;
      ends.in_is_recv = false;
      ends.in = is_root ? args.send : Buffer{};
      ends.block_bytes = is_root ? args.send.size_bytes() / members : args.recv.size_bytes();
      if (root_in_place) ends.out = {};
      break;
    default:
      break;
  }
  return ends;
}

core::Segment segment_of(const Buffer& buffer) {
  auto type =
      std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, buffer.type.block_bytes, 0}},
                                            static_cast<std::ptrdiff_t>(buffer.type.stride_bytes));
  return {std::move(type), buffer.count, 0};
}

// By rank; empty where all are equal.
std::vector<std::size_t> uneven_blocks(const CollectiveArgs& args) {
  if (has_sizes_by_pair(args.kind)) return {};
  const auto differs = std::ranges::adjacent_find(args.blocks_bytes, std::ranges::not_equal_to());
  return differs == args.blocks_bytes.end() ? std::vector<std::size_t>() : args.blocks_bytes;
}

std::uint64_t hash_of(const std::vector<std::size_t>& blocks_bytes) {
  std::uint64_t hash = 0;
  for (const std::size_t bytes : blocks_bytes) hash = (hash ^ bytes) * 1099511628211ull + 1;
  return hash;
}

device::ReduceOp device_op(Op op) {
  return op == Op::none  ? device::ReduceOp::none
         : op == Op::sum ? device::ReduceOp::sum
                         : device::ReduceOp::min;
}

// As one of blocks for, or from, the ranks: of equal length, or all of it the root's.
void divide(core::CallEnd& end, int size, int root, bool is_for_root, int skipped) {
  if (!end.present()) return;
  const core::Segment whole = end.segment;
  end.blocks.resize(static_cast<std::size_t>(size));
  if (is_for_root) {
    end.blocks[static_cast<std::size_t>(root)] = whole;
    return;
  }
  const std::size_t count = whole.count / end.blocks.size();
  for (std::size_t rank = 0; rank < end.blocks.size(); ++rank) {
    if (static_cast<int>(rank) == skipped) continue;
    const std::size_t extent_bytes = static_cast<std::size_t>(whole.type->extent_bytes());
    end.blocks[rank] = {whole.type, count,
                        static_cast<std::ptrdiff_t>(rank * count * extent_bytes)};
  }
}

// The same where the blocks have these lengths.
void divide_by(core::CallEnd& end, const std::vector<std::size_t>& blocks_bytes, int skipped) {
  if (!end.present()) return;
  const core::Segment whole = end.segment;
  const std::size_t element_bytes = whole.type->size_bytes();
  const std::size_t extent_bytes = static_cast<std::size_t>(whole.type->extent_bytes());
  end.blocks.resize(blocks_bytes.size());
  std::size_t first = 0;
  for (std::size_t rank = 0; rank < blocks_bytes.size(); ++rank) {
    const std::size_t count = blocks_bytes[rank] / element_bytes;
    if (static_cast<int>(rank) != skipped && count != 0)
      end.blocks[rank] = {whole.type, count, static_cast<std::ptrdiff_t>(first * extent_bytes)};
    first += count;
  }
}

}  // namespace

core::CallEnd ModelShim::call_end(const Buffer& buffer, const coll::CollectiveCall& call,
                                  bool of_send) {
  const core::StagedBuffer& staged = of_send ? call.send : call.recv;
  core::CallEnd end;
  end.of_send = of_send;
  if (buffer.count == 0) return end;
  end.user = buffer.data;
  end.segment = segment_of(buffer);
  // Some device buffers enter as one with absolute addresses does, through their whole shadow.
  const unsigned one_in = options_.exchange.shadowed_one_in;
  end.shadowed = staged.is_staged() && one_in != 0 && scheduler_.random(one_in) == 0;
  if (end.shadowed) return end;
  end.memory = staged.where();
  end.runtime = staged.where().runtime;
  end.device = staged.where().device;
  end.on_device = staged.is_staged() && staged.where().kind == device::MemoryKind::device;
  return end;
}

// Eligible by what is equal on all ranks alone.
std::optional<coll::CollArgs> ModelShim::coll_args(Comm comm, const CollectiveArgs& args,
                                                   const coll::CollectiveCall& call) {
  const bool moves = args.kind >= Collective::bcast && args.kind <= Collective::alltoallv;
  const int size = host_.size_of(comm);
  if (!moves || size == 1) return std::nullopt;
  const int me = host_.rank_in(comm);
  const Ends ends = ends_of(args, static_cast<std::size_t>(me), static_cast<std::size_t>(size));
  const Type& type = ends.in.type;
  const bool reduction = is_reduction(args.kind);
  if (ends.block_bytes == 0 || (reduction && type.block_bytes != type.stride_bytes))
    return std::nullopt;

  coll::CollArgs made;
  const std::size_t element_bytes = reduction ? sizeof(std::int64_t) : 1;
  made.key = {static_cast<std::uint32_t>(args.kind), static_cast<std::uint32_t>(args.op),
              reduction ? 1u : 0u, ends.block_bytes, hash_of(uneven_blocks(args))};
  made.size_bytes = ends.block_bytes;
  made.chunk_bytes = std::max<std::size_t>(1, options_.chunk_bytes / element_bytes) * element_bytes;
  made.in = call_end(ends.in, call, !ends.in_is_recv);
  // One buffer that is both ends lies in one place.
  const bool same = ends.in_is_recv && ends.in.count != 0 && ends.out.count != 0;
  made.out = same ? made.in : call_end(ends.out, call, false);
  if (same) made.out.segment = segment_of(ends.out);
  const bool any_device = made.in.runtime != nullptr || made.out.runtime != nullptr ||
                          made.in.shadowed || made.out.shadowed;
  made.ballot = any_device ? core::Ballot::device : core::Ballot::host;
  made.rank = me;
  made.in_place = ends.contributes_in_place;
  made.host.issue_vote = [this, comm](const core::Vote& mine, core::Vote& all,
                                      core::HostRequest& request) {
    if (const int code = host_code(); code != 0) return code;
    CollectiveArgs vote{.kind = Collective::allreduce, .op = Op::min};
    const Type word{sizeof(std::int64_t), sizeof(std::int64_t)};
    vote.send = {const_cast<std::int64_t*>(mine.words.data()), word, mine.words.size()};
    vote.recv = {all.words.data(), word, all.words.size()};
    request = host_.collective(Form::nonblocking, comm, vote);
    return 0;
  };
  add_exchange(made, comm, args);
  add_chunks(made, comm, args);
  if (!made.exchange && !made.host.issue_chunk) return std::nullopt;
  return made;
}

void ModelShim::add_exchange(coll::CollArgs& made, Comm comm, const CollectiveArgs& args) {
  static const std::map<Collective, node::Kind> kinds{
      {Collective::bcast, node::Kind::bcast},
      {Collective::reduce, node::Kind::reduce},
      {Collective::allreduce, node::Kind::allreduce},
      {Collective::allgather, node::Kind::allgather},
      {Collective::alltoall, node::Kind::alltoall},
      {Collective::gather, node::Kind::gather},
      {Collective::scatter, node::Kind::scatter},
      {Collective::reduce_scatter_block, node::Kind::reduce_scatter_block},
      {Collective::scan, node::Kind::scan},
      {Collective::exscan, node::Kind::exscan},
      {Collective::reduce_scatter, node::Kind::reduce_scatter},
      {Collective::allgatherv, node::Kind::allgatherv},
      {Collective::gatherv, node::Kind::gatherv},
      {Collective::scatterv, node::Kind::scatterv},
      {Collective::alltoallv, node::Kind::alltoallv}};
  made.kind = kinds.at(args.kind);
  const std::vector<std::size_t> blocks_bytes = uneven_blocks(args);
  const ExchangeOptions& options = options_.exchange;
  const bool of_pairs = has_sizes_by_pair(args.kind);
  const bool fits_regions =
      options.node_bytes != 0 && (of_pairs || made.size_bytes >= options.node_bytes);
  const bool fits_inboxes =
      !of_pairs && blocks_bytes.empty() && made.size_bytes <= options.lane_bytes;
  if (!fits_regions && !fits_inboxes) return;
  made.exchange =
      node::Call{.kind = made.kind,
                 .size = host_.size_of(comm),
                 .root = args.root,
                 .block_bytes = blocks_bytes.empty() ? made.size_bytes
                                                     : *std::ranges::max_element(blocks_bytes),
                 .blocks_bytes = blocks_bytes,
                 .fits_regions = fits_regions,
                 .op = device_op(args.op),
                 .element = device::Element::int64,
                 .one_shot_bytes = options.one_shot_bytes,
                 .engine_bytes = options.one_shot_bytes,
                 .spread_bytes = options.spread ? 1 : SIZE_MAX};
  made.ways.direct = options.direct;
  if (fits_regions) go_by_pairs(made, args);
  made.region_bytes = options.region_bytes;
  const bool by_pairs = node::goes_by_pairs(made.exchange->kind);
  made.ways.lane_bytes = fits_inboxes || by_pairs ? options.lane_bytes : 0;
  made.ways.inbox_calls = options.inbox_calls;
  made.region_runtime = &FakeDevice::get(0);
  made.host.issue_allgather = [this, comm](const void* mine, void* all, std::size_t size_bytes,
                                           core::HostRequest& request) {
    if (const int code = host_code(); code != 0) return code;
    CollectiveArgs records{.kind = Collective::allgather};
    const auto members = static_cast<std::size_t>(host_.size_of(comm));
    records.send = {const_cast<void*>(mine), {1, 1}, size_bytes};
    records.recv = {all, {1, 1}, size_bytes * members};
    request = host_.collective(Form::nonblocking, comm, records);
    return 0;
  };
}

// Those that have no other way; a gather as a gatherv, and the like.
void ModelShim::go_by_pairs(coll::CollArgs& made, const CollectiveArgs& args) {
  node::Call& call = *made.exchange;
  made.ways.lend_bytes = options_.exchange.direct ? 1 : 0;
  if (has_sizes_by_pair(args.kind)) {
    made.in_place = args.in_place && args.kind == Collective::alltoallv;
    const bool own_stays = args.in_place && (made.in_place || args.root == made.rank);
    const int skipped = own_stays ? made.rank : -1;
    const bool to_root = args.kind == Collective::gatherv;
    to_root
        ? divide(made.in, call.size, args.root, true, skipped)
        : divide_by(made.in,
                    made.in_place || args.sent_bytes.empty() ? args.blocks_bytes : args.sent_bytes,
                    skipped);
    args.kind == Collective::scatterv ? divide(made.out, call.size, args.root, true, skipped)
                                      : divide_by(made.out, args.blocks_bytes, skipped);
    return;
  }
  const bool gathers = args.kind == Collective::gather;
  const bool scatters = args.kind == Collective::scatter;
  if (!options_.exchange.pairs || (!gathers && !scatters && args.kind != Collective::alltoall))
    return;
  made.kind = gathers    ? node::Kind::gatherv
              : scatters ? node::Kind::scatterv
                         : node::Kind::alltoallv;
  call.kind = made.kind;
  made.in_place = args.in_place && args.kind == Collective::alltoall;
  const bool own_stays = args.in_place && (made.in_place || args.root == made.rank);
  const int skipped = own_stays ? made.rank : -1;
  divide(made.in, call.size, args.root, gathers, skipped);
  divide(made.out, call.size, args.root, scatters, skipped);
}

void ModelShim::add_chunks(coll::CollArgs& made, Comm comm, const CollectiveArgs& args) {
  const bool can_be_cut = args.kind == Collective::bcast || args.kind == Collective::reduce ||
                          args.kind == Collective::allreduce;
  if (!can_be_cut || made.size_bytes < options_.pipeline_bytes) return;
  made.host.issue_chunk = [this, comm, kind = args.kind, op = args.op, root = args.root](
                              const void* in, void* out, std::size_t length_bytes,
                              core::HostRequest& request) {
    if (const int code = host_code(); code != 0) return code;
    CollectiveArgs chunk{.kind = kind, .op = op, .root = root};
    chunk.in_place = in == out;
    chunk.send = {const_cast<void*>(in), {1, 1}, in != nullptr && in != out ? length_bytes : 0};
    chunk.recv = {out, {1, 1}, out != nullptr ? length_bytes : 0};
    if (kind == Collective::bcast) {
      chunk.recv = {in != nullptr ? const_cast<void*>(in) : out, {1, 1}, length_bytes};
      chunk.send = {};
      chunk.in_place = false;
    }
    request = host_.collective(Form::nonblocking, comm, chunk);
    return 0;
  };
}

}  // namespace accord::model
