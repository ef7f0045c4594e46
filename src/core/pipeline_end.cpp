// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/pipeline_end.h"

#include <algorithm>

namespace accord::core {

CopyBatch PipelineEnd::copies(Direction direction, std::size_t first_bytes,
                              std::size_t length_bytes, void* packed) const {
  CopyBatch batch;
  if (blocks.empty()) {
    batch.append(packed_copy(segment, user, first_bytes, length_bytes, packed, direction));
    return batch;
  }
  std::size_t block_first = 0;  // in the packed form
  for (const Segment& block : blocks) {
    const std::size_t block_end = block_first + block.size_bytes();
    const std::size_t low = std::max(first_bytes, block_first);
    const std::size_t high = std::min(first_bytes + length_bytes, block_end);
    if (low < high) {
      batch.append(packed_copy(block, user, low - block_first, high - low,
                               static_cast<std::byte*>(packed) + (low - first_bytes), direction));
    }
    block_first = block_end;
  }
  return batch;
}

bool PipelineEnd::offset_in_memory(std::size_t first_bytes, std::size_t length_bytes,
                                   std::uint64_t& offset_bytes) const noexcept {
  offset_bytes =
      static_cast<std::uint64_t>(address(first_bytes) - static_cast<std::byte*>(memory.base));
  return offset_bytes <= memory.size_bytes && length_bytes <= memory.size_bytes - offset_bytes;
}

Status PipelineEnd::copy(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                         void* host, device::CopyTicket& ticket) const {
  const CopyBatch batch = copies(direction, first_bytes, length_bytes, host);
  if (runtime != nullptr) return runtime->batch_begin(device, batch, ticket);
  device::copy_on_host(batch);
  return {};
}

Status PipelineEnd::copied(device::CopyTicket& ticket, bool& done) const {
  done = runtime == nullptr || ticket.handle == nullptr;
  return done ? Status() : runtime->copy_done(ticket, done);
}

}  // namespace accord::core
