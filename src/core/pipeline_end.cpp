// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/pipeline_end.h"

#include <cstring>

#include "core/staged_buffer.h"

namespace accord::core {

Status PipelineEnd::copy(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                         void* host, device::CopyTicket& ticket) const {
  const CopyList list = packed_copies(segment, user, first_bytes, length_bytes, host,
                                      direction == Direction::to_host);
  if (runtime != nullptr) return runtime->copy_begin(device, list.copies(), ticket);
  for (const device::Copy& rows : list.copies()) {
    for (std::size_t row = 0; row < rows.rows; ++row) {
      std::memcpy(static_cast<std::byte*>(rows.dst) + row * rows.dst_pitch_bytes,
                  static_cast<const std::byte*>(rows.src) + row * rows.src_pitch_bytes,
                  rows.row_bytes);
    }
  }
  return {};
}

Status PipelineEnd::copied(device::CopyTicket& ticket, bool& done) const {
  done = runtime == nullptr || ticket.handle == nullptr;
  return done ? Status() : runtime->copy_done(ticket, done);
}

}  // namespace accord::core
