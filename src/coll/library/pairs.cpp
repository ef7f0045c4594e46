// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/pairs.h"

#include <fmt/format.h>

#include "coll/pairs/pair.h"

namespace accord::coll {

void CclPairs::Block::add(const core::Segment& part) {
  const std::size_t part_bytes = part.count != 0 ? part.size_bytes() : 0;
  ++parts;
  parts_hash = (parts_hash ^ part_bytes) * 1099511628211ull + 1;
  if (part_bytes == 0) return;
  if (size_bytes == 0) {
    end.segment = part;
  } else {
    if (end.blocks.empty()) end.blocks.push_back(end.segment);
    end.blocks.push_back(part);
    end.segment = {core::Typemap::contiguous(1), size_bytes + part_bytes, 0};
  }
  size_bytes += part_bytes;
}

std::vector<CclPairs::Block> CclPairs::blocks_of(const core::CallEnd& end,
                                                 bool may_be_direct) const {
  std::vector<Block> blocks(static_cast<std::size_t>(group_.size()),
                            Block{.end = without_blocks(end)});
  for (std::size_t i = 0; i < end.blocks.size(); ++i)
    blocks[static_cast<std::size_t>(end.peer_of(i))].add(end.blocks[i]);
  for (Block& block : blocks) {
    block.is_direct = may_be_direct && block.size_bytes != 0 && is_direct(block.end, 0, 1);
    if (block.is_direct) block.place = block.end.address(0);
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
  outgoing_ = blocks_of(args_.in, !args_.in_place);
  incoming_ = blocks_of(args_.out, true);
  const std::size_t sent = place_elsewhere(outgoing_, nullptr);
  const std::size_t received = place_elsewhere(incoming_, nullptr);
  if (sent + received == 0) return {};
  std::byte* scratch = nullptr;
  ACCORD_TRY(group_.scratch(sent + received, scratch));
  place_elsewhere(outgoing_, scratch);
  place_elsewhere(incoming_, scratch + sent);
  core::CopyBatch batch;
  for (const Block& block : outgoing_) {
    if (block.is_direct || block.size_bytes == 0) continue;
    batch.add(block.end.copies(core::CallEnd::Direction::pack, 0, block.size_bytes, block.place));
  }
  return begin(batch, ticket);
}

namespace {

Status disagreement(int peer, std::uint64_t sent, std::uint64_t received, std::uint64_t several) {
  if (((sent | received) & several) != 0)
    return {StatusCode::mismatch,
            fmt::format("rank {} sends other blocks than this rank receives from it", peer)};
  return sends_other(peer, sent, received);
}

}  // namespace

// What this rank sends, and what it expects.
void CclPairs::tell_peers() {
  for (int peer = 0; peer < group_.size(); ++peer)
    group_.tell(peer, {outgoing_[static_cast<std::size_t>(peer)].told(),
                       incoming_[static_cast<std::size_t>(peer)].told()});
}

void CclPairs::look_at_peers() {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const auto [is_sent, is_expected] = group_.told_by(peer);
    Block& sent = outgoing_[static_cast<std::size_t>(peer)];
    Block& received = incoming_[static_cast<std::size_t>(peer)];
    if (is_sent != received.told()) {
      keep_first(mistake_, disagreement(peer, is_sent, received.told(), kSeveral));
      received.size_bytes = 0;
    }
    if (is_expected != sent.told()) {
      keep_first(mistake_, not_received(peer, sent.size_bytes));
      sent.size_bytes = 0;
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
  core::CopyBatch batch;
  for (const Block& block : incoming_) {
    if (block.is_direct || block.size_bytes == 0) continue;
    batch.add(block.end.copies(core::CallEnd::Direction::unpack, 0, block.size_bytes, block.place));
  }
  return begin(batch, ticket);
}

}  // namespace accord::coll
