// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/layout.h"

namespace accord::core {
namespace {

// A rectangle's pitch must fit the drivers' 2-D copies (CUDA: 2^31 - 1).
constexpr std::ptrdiff_t kPitchBytesMax = (std::ptrdiff_t{1} << 31) - 1;

std::ptrdiff_t distance(const void* from, const void* to) {
  return static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from);
}

bool usable_pitch(std::ptrdiff_t pitch_bytes, std::size_t row_bytes) {
  return pitch_bytes >= static_cast<std::ptrdiff_t>(row_bytes) && pitch_bytes <= kPitchBytesMax;
}

}  // namespace

Typemap::Typemap(std::vector<Run> runs, std::ptrdiff_t extent_bytes) : extent_bytes_(extent_bytes) {
  for (const Run& run : runs) {
    if (run.length_bytes == 0) continue;
    if (run.offset_bytes != kPadding) {
      Run* last = runs_.empty() ? nullptr : &runs_.back();
      const bool continues =
          last != nullptr && last->packed_bytes + last->length_bytes == size_bytes_ &&
          last->offset_bytes + static_cast<std::ptrdiff_t>(last->length_bytes) == run.offset_bytes;
      if (continues) {
        last->length_bytes += run.length_bytes;
      } else {
        runs_.push_back({run.offset_bytes, run.length_bytes, size_bytes_});
      }
    }
    size_bytes_ += run.length_bytes;
  }
  if (runs_.empty()) return;
  low_bytes_ = runs_.front().offset_bytes;
  for (const Run& run : runs_) {
    low_bytes_ = std::min(low_bytes_, run.offset_bytes);
    high_bytes_ =
        std::max(high_bytes_, run.offset_bytes + static_cast<std::ptrdiff_t>(run.length_bytes));
  }
  dense_ = runs_.size() == 1 && runs_.front().length_bytes == size_bytes_ &&
           extent_bytes_ == static_cast<std::ptrdiff_t>(size_bytes_);
}

std::shared_ptr<const Typemap> Typemap::contiguous(std::size_t size_bytes) {
  return std::make_shared<const Typemap>(std::vector<Run>{{0, size_bytes, 0}},
                                         static_cast<std::ptrdiff_t>(size_bytes));
}

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

void CopyList::append(void* dst, const void* src, std::size_t length_bytes) {
  if (length_bytes == 0) return;
  if (!copies_.empty()) {
    device::Copy& last = copies_.back();
    if (last.rows == 1 &&
        static_cast<std::byte*>(last.dst) + last.row_bytes == static_cast<std::byte*>(dst) &&
        static_cast<const std::byte*>(last.src) + last.row_bytes ==
            static_cast<const std::byte*>(src)) {
      last.row_bytes += length_bytes;
      return;
    }
    if (last.row_bytes == length_bytes) {
      const std::ptrdiff_t dst_step = distance(last.dst, dst);
      const std::ptrdiff_t src_step = distance(last.src, src);
      if (last.rows == 1 && usable_pitch(dst_step, length_bytes) &&
          usable_pitch(src_step, length_bytes)) {
        last.dst_pitch_bytes = static_cast<std::size_t>(dst_step);
        last.src_pitch_bytes = static_cast<std::size_t>(src_step);
        last.rows = 2;
        return;
      }
      if (last.rows > 1 &&
          dst_step == static_cast<std::ptrdiff_t>(last.rows * last.dst_pitch_bytes) &&
          src_step == static_cast<std::ptrdiff_t>(last.rows * last.src_pitch_bytes)) {
        ++last.rows;
        return;
      }
    }
  }
  copies_.push_back({dst, src, length_bytes, 1, 0, 0});
}

void CopyList::append_rows(const device::Copy& rows) {
  if (rows.rows > 1 &&
      usable_pitch(static_cast<std::ptrdiff_t>(rows.dst_pitch_bytes), rows.row_bytes) &&
      usable_pitch(static_cast<std::ptrdiff_t>(rows.src_pitch_bytes), rows.row_bytes)) {
    copies_.push_back(rows);
    return;
  }
  for (std::size_t row = 0; row < rows.rows; ++row) {
    append(static_cast<std::byte*>(rows.dst) + row * rows.dst_pitch_bytes,
           static_cast<const std::byte*>(rows.src) + row * rows.src_pitch_bytes, rows.row_bytes);
  }
}

}  // namespace accord::core
