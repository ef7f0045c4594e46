// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/pair.h"

#include <fmt/format.h>

#include <algorithm>

namespace accord::coll {

core::CallEnd in_blocks(const core::CallEnd& end, int ranks) {
  core::CallEnd cut = end;
  if (!end.present()) return cut;
  const std::size_t count = end.segment.count / static_cast<std::size_t>(ranks);
  const auto step = static_cast<std::ptrdiff_t>(count) * end.segment.type->extent_bytes();
  for (int rank = 0; rank < ranks; ++rank)
    cut.blocks.push_back({end.segment.type, count, end.segment.offset_bytes + rank * step});
  cut.segment = {core::Typemap::contiguous(1), end.segment.size_bytes(), 0};
  return cut;
}

core::CallEnd without_blocks(const core::CallEnd& end) {
  core::CallEnd common = end;
  common.segment = {};
  common.blocks.clear();
  common.peers.clear();
  return common;
}

// Blocks without bytes count, too: the peer has as many.
void Pair::add(const core::Segment& part) {
  const std::size_t part_bytes = part.size_bytes();
  const bool is_first = sizes_hash == 0;
  const std::uint64_t hash = (sizes_hash + part_bytes + 1) * 0x9e3779b97f4a7c15;
  sizes_hash = static_cast<std::uint32_t>(hash >> 32) | 1;  // never 0
  if (is_first) {
    block = part;
  } else {
    further.push_back(part);
  }
  size_bytes += part_bytes;
}

Pair pair_of(const core::CallEnd& end, int peer) {
  Pair pair{.peer = peer};
  if (end.peers.empty()) {
    if (end.blocks.empty()) return pair;
    pair.block = end.blocks[static_cast<std::size_t>(peer)];
    pair.size_bytes = pair.block.size_bytes();
    return pair;
  }
  for (std::size_t i = 0; i < end.blocks.size(); ++i)
    if (end.peers[i] == peer) pair.add(end.blocks[i]);
  if (pair.is_one_block()) pair.sizes_hash = 0;
  return pair;
}

std::size_t pair_bytes(const core::CallEnd& end, int peer) noexcept {
  if (end.peers.empty())
    return end.blocks.empty() ? 0 : end.blocks[static_cast<std::size_t>(peer)].size_bytes();
  std::size_t size_bytes = 0;
  for (std::size_t i = 0; i < end.blocks.size(); ++i)
    if (end.peers[i] == peer) size_bytes += end.blocks[i].size_bytes();
  return size_bytes;
}

void add_copies(const core::CallEnd& end, const Pair& pair, core::CallEnd::Direction direction,
                std::size_t first_bytes, std::size_t length_bytes, void* packed,
                core::CopyBatch& batch) {
  const std::size_t end_bytes = first_bytes + length_bytes;
  std::size_t begin_bytes = 0;  // of the block, in the packed form of all
  const auto add = [&](const core::Segment& block) {
    const std::size_t behind_bytes = begin_bytes + block.size_bytes();
    const std::size_t low = std::max(first_bytes, begin_bytes);
    const std::size_t high = std::min(end_bytes, behind_bytes);
    if (low < high)
      batch.append(core::packed_copy(block, end.user, low - begin_bytes, high - low,
                                     static_cast<std::byte*>(packed) + (low - first_bytes),
                                     direction));
    begin_bytes = behind_bytes;
  };
  add(pair.block);
  for (const core::Segment& block : pair.further) add(block);
}

void add_copies_from(std::byte* lent, const device::Steps& runs, const core::CallEnd& end,
                     const Pair& pair, core::CopyBatch& batch) {
  if (runs.run_bytes == 0)
    return add_copies(end, pair, core::CallEnd::Direction::unpack, 0, pair.size_bytes, lent, batch);
  batch.append(core::copy_from_steps(pair.block, end.user, pair.size_bytes, lent, runs));
}

Status sends_other(int peer, std::size_t sent_bytes, std::size_t expected_bytes) {
  if (sent_bytes == 0) {
    return {StatusCode::mismatch,
            fmt::format("rank {} does not send the {} bytes that this rank receives", peer,
                        expected_bytes)};
  }
  return {sent_bytes > expected_bytes ? StatusCode::truncated : StatusCode::mismatch,
          fmt::format("rank {} sends {} bytes where this rank receives {}", peer, sent_bytes,
                      expected_bytes)};
}

Status sends_other_blocks(int peer) {
  return {StatusCode::mismatch,
          fmt::format("rank {} sends other blocks than this rank receives from it", peer)};
}

Status not_received(int peer, std::size_t sent_bytes) {
  return {
      StatusCode::mismatch,
      fmt::format("rank {} does not receive the {} bytes that this rank sends", peer, sent_bytes)};
}

}  // namespace accord::coll
