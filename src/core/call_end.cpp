// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/call_end.h"

#include <algorithm>

namespace accord::core {

namespace {

// Calls visit(piece, offset in it, offset from first_bytes, length) for what each piece of a packed
// form has in common with bytes [first, first + length) of it.
template <class Pieces, class Size, class Visit>
void for_each_common(const Pieces& pieces, Size size_of, std::size_t first_bytes,
                     std::size_t length_bytes, Visit visit) {
  std::size_t begin = 0;
  for (const auto& piece : pieces) {
    const std::size_t end = begin + size_of(piece);
    const std::size_t low = std::max(first_bytes, begin);
    const std::size_t high = std::min(first_bytes + length_bytes, end);
    if (low < high) visit(piece, low - begin, low - first_bytes, high - low);
    begin = end;
  }
}

}  // namespace

CopyBatch CallEnd::copies(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                          void* packed) const {
  CopyBatch batch;
  if (parts.empty()) {
    add_copies(direction, first_bytes, length_bytes, packed, batch);
    return batch;
  }
  for_each_common(
      parts, [](const Part& part) { return part.length_bytes; }, first_bytes, length_bytes,
      [&](const Part& part, std::size_t in_part, std::size_t in_range, std::size_t length) {
        if (!part.nowhere())
          add_copies(direction, part.first_bytes + in_part, length,
                     static_cast<std::byte*>(packed) + in_range, batch);
      });
  return batch;
}

void CallEnd::add_copies(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                         void* packed, CopyBatch& batch) const {
  if (blocks.empty()) {
    batch.append(packed_copy(segment, user, first_bytes, length_bytes, packed, direction));
    return;
  }
  for_each_common(
      blocks, [](const Segment& block) { return block.size_bytes(); }, first_bytes, length_bytes,
      [&](const Segment& block, std::size_t in_block, std::size_t in_range, std::size_t length) {
        batch.append(packed_copy(block, user, in_block, length,
                                 static_cast<std::byte*>(packed) + in_range, direction));
      });
}

bool CallEnd::offset_in_memory(std::size_t first_bytes, std::size_t length_bytes,
                               std::uint64_t& offset_bytes) const noexcept {
  offset_bytes =
      static_cast<std::uint64_t>(address(first_bytes) - static_cast<std::byte*>(memory.base));
  return offset_bytes <= memory.size_bytes && length_bytes <= memory.size_bytes - offset_bytes;
}

bool CallEnd::span_in_memory(std::uint64_t& offset_bytes) const noexcept {
  const std::ptrdiff_t low_bytes = segment.low_bytes();
  const auto length_bytes = static_cast<std::uint64_t>(segment.high_bytes() - low_bytes);
  offset_bytes =
      static_cast<std::uint64_t>(at(user, low_bytes) - static_cast<std::byte*>(memory.base));
  return offset_bytes <= memory.size_bytes && length_bytes <= memory.size_bytes - offset_bytes;
}

Status CallEnd::copy(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                     void* host, device::CopyTicket& ticket) const {
  return carry(copies(direction, first_bytes, length_bytes, host), ticket);
}

Status CallEnd::carry(const CopyBatch& batch, device::CopyTicket& ticket) const {
  if (runtime != nullptr) return runtime->batch_begin(device, batch, ticket);
  device::copy_on_host(batch);
  return {};
}

Status CallEnd::copied(device::CopyTicket& ticket, bool& done) const {
  done = runtime == nullptr || ticket.handle == nullptr;
  return done ? Status() : runtime->copy_done(ticket, done);
}

}  // namespace accord::core
