// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/pair.h"

#include <fmt/format.h>

namespace accord::coll {

core::CallEnd without_blocks(const core::CallEnd& end) {
  core::CallEnd common = end;
  common.segment = {};
  common.blocks.clear();
  common.peers.clear();
  return common;
}

core::LayoutCopy copy_of(const core::CallEnd& end, const Pair& pair,
                         core::CallEnd::Direction direction, std::size_t first_bytes,
                         std::size_t length_bytes, void* packed) {
  return core::packed_copy(pair.block, end.user, first_bytes, length_bytes, packed, direction);
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

Status not_received(int peer, std::size_t sent_bytes) {
  return {
      StatusCode::mismatch,
      fmt::format("rank {} does not receive the {} bytes that this rank sends", peer, sent_bytes)};
}

}  // namespace accord::coll
