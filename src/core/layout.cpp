// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/layout.h"

#include <algorithm>

namespace accord::core {

std::ptrdiff_t Segment::low_bytes() const noexcept {
  const auto last = static_cast<std::ptrdiff_t>(count) - 1;
  return offset_bytes + type->low_bytes() +
         std::min<std::ptrdiff_t>(0, last * type->extent_bytes());
}

std::ptrdiff_t Segment::high_bytes() const noexcept {
  const auto last = static_cast<std::ptrdiff_t>(count) - 1;
  return offset_bytes + type->high_bytes() +
         std::max<std::ptrdiff_t>(0, last * type->extent_bytes());
}

LayoutCopy packed_copy(const Segment& segment, void* user, std::size_t first_bytes,
                       std::size_t length_bytes, void* packed, LayoutCopy::Direction direction) {
  return {.type = segment.type,
          .elements = at(user, segment.offset_bytes),
          .other = static_cast<std::byte*>(packed),
          .first_bytes = first_bytes,
          .length_bytes = length_bytes,
          .direction = direction};
}

CopyBatch packed_copies(const Segment& segment, void* user, std::size_t length_bytes, void* packed,
                        LayoutCopy::Direction direction) {
  CopyBatch batch;
  batch.append(packed_copy(segment, user, 0, length_bytes, packed, direction));
  return batch;
}

std::byte* run_of(const Segment& segment, void* user, std::size_t length_bytes) {
  const CopyBatch batch =
      packed_copies(segment, user, length_bytes, nullptr, LayoutCopy::Direction::pack);
  if (!batch.laid_out.empty() || batch.plain.copies().size() != 1) return nullptr;
  const device::Copy& run = batch.plain.copies()[0];
  return run.rows == 1 ? static_cast<std::byte*>(const_cast<void*>(run.src)) : nullptr;
}

}  // namespace accord::core
