// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/two_level_pairs.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "coll/inter/transports.h"
#include "coll/select/selection.h"
#include "coll/tags.h"

namespace accord::coll {
namespace {

std::atomic<std::uint64_t> pairwise_calls_done{0};

CollArgs near_args(const CollArgs& args, int local_rank) {
  CollArgs near;
  near.rank = local_rank;
  near.in_place = args.in_place;
  near.ways.lend_bytes = args.ways.lend_bytes;
  return near;
}

FarPairs::Tags next_tags(core::Nodes& nodes) {
  const auto next = [&] { return tag_of(nodes.lane, nodes.chunks++); };
  const int pieces = next();
  const int in = next();
  return {pieces, {in, next()}};
}

// What a call pair by pair is asked for here; without the ends, which are known at the first step.
CollArgs as_pairs(const CollArgs& args, device::AdapterReach adapters) {
  CollArgs made;
  made.exchange = args.exchange;
  made.parcel_bytes = args.parcel_bytes;
  made.rank = args.rank;
  made.ways.lend_bytes = args.ways.lend_bytes;
  made.ways.offer_bytes = args.ways.offer_bytes;
  const bool by_rule = args.ways.between == NetWay();
  if (by_rule && node::goes_by_pairs(args.exchange->kind))
    made.ways.offer_bytes_end = offers_end(adapters);
  // Of an alltoall in place both ends are one, and nothing else tells.
  made.in_place = args.exchange->kind == node::Kind::alltoall ? !args.in.of_send : args.in_place;
  return made;
}

// In place the own block stays where it is.
core::CallEnd end_of_pairs(const core::CallEnd& end, const CollArgs& args) {
  if (node::goes_by_pairs(args.exchange->kind)) return end;
  core::CallEnd cut = in_blocks(end, args.exchange->size);
  if (args.in_place && !cut.blocks.empty()) cut.blocks[static_cast<std::size_t>(args.rank)] = {};
  return cut;
}

// The same on all ranks of the node. Who copies what travels together copies the rest with it; what
// is copied by itself does not gain by that, not even where turns on the device are long (4 ranks
// on one H200 without MPS: gatherv of 128 KiB 104 us through regions, 153 us by messages).
std::size_t near_bytes(const node::Group& group, const CollArgs& args) {
  const bool go_together =
      group.shares_device() || Bundles::take_equal(args.exchange->kind, args.exchange->block_bytes);
  return go_together ? FarPairs::short_bytes_max(args) + 1 : 1;
}

}  // namespace

TwoLevelPairs::TwoLevelPairs(core::Team& team, const CollArgs& args)
    : placement_(team.regions.placement),
      wire_(team.nodes.wire),
      between_(between_nodes(args, placement_)),
      transport_(make_transport(between_, args, *wire_)),
      given_(args),
      args_(as_pairs(args, placement_.adapters)),
      near_bytes_(near_bytes(*team.nodes.local.group, args)),
      near_args_(near_args(args_, placement_.local_rank(args.rank))),
      near_(team.nodes.local.group, near_args_, near_bytes_),
      far_({*wire_, transport_.get()}, placement_, team.nodes.local.group->runtime(), args_,
           next_tags(team.nodes), near_bytes_) {}

bool TwoLevelPairs::takes(node::Kind kind, int leaders_max) noexcept {
  return node::goes_by_pairs(kind) || (kind == node::Kind::alltoall && leaders_max != 1);
}

// The blocks of this node's ranks, in their order; neighbours' in that of the call.
core::CallEnd TwoLevelPairs::near_end(const core::CallEnd& end) const {
  core::CallEnd near = without_blocks(end);
  if (end.blocks.empty()) return near;
  if (end.peers.empty()) {
    for (const int rank : placement_.beside(args_.rank))
      near.blocks.push_back(end.blocks[static_cast<std::size_t>(rank)]);
    return near;
  }
  for (std::size_t i = 0; i < end.blocks.size(); ++i) {
    if (placement_.node(end.peers[i]) != placement_.node(args_.rank)) continue;
    near.blocks.push_back(end.blocks[i]);
    near.peers.push_back(placement_.local_rank(end.peers[i]));
  }
  return near;
}

void TwoLevelPairs::take_ends() {
  if (std::exchange(began_, true)) return;
  args_.in = end_of_pairs(given_.in, args_);
  args_.out = end_of_pairs(given_.out, args_);
  near_args_.in = near_end(args_.in);
  near_args_.out = near_end(args_.out);
}

Status TwoLevelPairs::advance(bool& done) {
  take_ends();
  ACCORD_TRY(advance_part(far_, far_is_done_, mistake_));
  ACCORD_TRY(advance_part(near_, near_is_done_, mistake_));
  done = near_is_done_ && far_is_done_;
  if (done) pairwise_calls_done.fetch_add(1, std::memory_order_relaxed);
  return done ? mistake_ : Status();
}

void TwoLevelPairs::stop(bool& done) {
  take_ends();  // peers wait for what they tell
  bool near_ended = false;
  bool far_ended = false;
  near_.stop(near_ended);
  far_.stop(far_ended);
  done = near_ended && far_ended;
}

bool TwoLevelPairs::has_block_of(int peer) const {
  return far_.takes(peer, pair_bytes(args_.out, peer))
             ? far_.has_block_of(peer)
             : near_.has_block_of(placement_.local_rank(peer));
}

const char* TwoLevelPairs::path() const noexcept {
  return path_of(node::goes_by_pairs(args_.exchange->kind), between_);
}

void TwoLevelPairs::report() {
  const FarPairs::Counters far = FarPairs::counters();
  log::info(
      "nodes: {} collectives pair by pair, {} messages for them of one pair and {} of several, {} "
      "offers, {} copies",
      pairwise_calls_done.load(std::memory_order_relaxed), far.messages, Bundles::messages(),
      far.offers, far.copies);
}

}  // namespace accord::coll
