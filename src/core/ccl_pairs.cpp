// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/ccl_pairs.h"

#include <fmt/format.h>

#include <utility>

namespace accord::core {

std::vector<CclPairs::Block> CclPairs::blocks_of(const PipelineEnd& end, bool may_be_direct) const {
  std::vector<Block> blocks(static_cast<std::size_t>(peers().size()));
  PipelineEnd one = end;
  const std::vector<Segment> segments = std::exchange(one.blocks, {});
  for (std::size_t peer = 0; peer < segments.size(); ++peer) {
    Block& block = blocks[peer];
    one.segment = segments[peer];
    block.end = one;
    block.size_bytes = one.segment.size_bytes();
    block.is_direct = may_be_direct && block.size_bytes != 0 && is_direct(one, 0, 1);
    if (block.is_direct) block.place = one.address(0);
  }
  return blocks;
}

// How many bytes that takes.
std::size_t CclPairs::place_elsewhere(std::vector<Block>& blocks, std::byte* scratch) {
  std::size_t next = 0;
  for (Block& block : blocks) {
    if (block.is_direct || block.size_bytes == 0) continue;
    block.place = scratch + next;
    next += CclGroup::whole_lines(block.size_bytes);
  }
  return next;
}

// In place, what arrives would overwrite what is yet to be sent.
Status CclPairs::pack(device::CopyTicket& ticket) {
  outgoing_ = blocks_of(pipeline_.in, !pipeline_.in_place);
  incoming_ = blocks_of(pipeline_.out, true);
  const std::size_t sent = place_elsewhere(outgoing_, nullptr);
  const std::size_t received = place_elsewhere(incoming_, nullptr);
  if (sent + received == 0) return {};
  std::byte* scratch = nullptr;
  ACCORD_TRY(group_.scratch(sent + received, scratch));
  place_elsewhere(outgoing_, scratch);
  place_elsewhere(incoming_, scratch + sent);
  CopyBatch batch;
  for (const Block& block : outgoing_) {
    if (block.is_direct || block.size_bytes == 0) continue;
    batch.add(block.end.copies(PipelineEnd::Direction::pack, 0, block.size_bytes, block.place));
  }
  return begin(batch, ticket);
}

// A parcel's lane is not used here: its place tells what the sender of the parcel expects.
void CclPairs::tell_peers() {
  for (int peer = 0; peer < peers().size(); ++peer) {
    node::Parcel& parcel = peers().parcel(peers().rank(), peer);
    parcel.size_bytes = outgoing_[static_cast<std::size_t>(peer)].size_bytes;
    parcel.lane_bytes = incoming_[static_cast<std::size_t>(peer)].size_bytes;
  }
}

void CclPairs::look_at_peers() {
  for (int peer = 0; peer < peers().size(); ++peer) {
    const node::Parcel& parcel = peers().parcel(peer, peers().rank());
    std::size_t& sent = outgoing_[static_cast<std::size_t>(peer)].size_bytes;
    std::size_t& received = incoming_[static_cast<std::size_t>(peer)].size_bytes;
    if (parcel.size_bytes != received) {
      keep_first(mistake_,
                 {parcel.size_bytes > received ? StatusCode::truncated : StatusCode::mismatch,
                  fmt::format("rank {} sends {} bytes where this rank receives {}", peer,
                              parcel.size_bytes, received)});
      received = 0;
    }
    if (parcel.lane_bytes != sent) {
      keep_first(
          mistake_,
          {StatusCode::mismatch,
           fmt::format("rank {} does not receive the {} bytes that this rank sends", peer, sent)});
      sent = 0;
    }
  }
}

std::vector<ccl::Work> CclPairs::works() const {
  std::vector<ccl::Work> made;
  const auto add = [&](accord_ccl_call call, const Block& block, std::size_t peer) {
    if (block.size_bytes == 0) return;
    std::byte* const place = for_library(block.place);
    const bool sends = call == ACCORD_CCL_SEND;
    made.push_back({call, ACCORD_CCL_UINT8, ACCORD_CCL_NONE, sends ? place : nullptr,
                    sends ? nullptr : place, block.size_bytes, static_cast<int>(peer)});
  };
  for (std::size_t peer = 0; peer < outgoing_.size(); ++peer) {
    add(ACCORD_CCL_SEND, outgoing_[peer], peer);
    add(ACCORD_CCL_RECV, incoming_[peer], peer);
  }
  return made;
}

Status CclPairs::unpack(device::CopyTicket& ticket) {
  CopyBatch batch;
  for (const Block& block : incoming_) {
    if (block.is_direct || block.size_bytes == 0) continue;
    batch.add(block.end.copies(PipelineEnd::Direction::unpack, 0, block.size_bytes, block.place));
  }
  return begin(batch, ticket);
}

}  // namespace accord::core
