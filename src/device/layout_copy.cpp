// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/layout_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

namespace accord::device {
namespace {

// A rectangle's pitch must fit the drivers' 2-D copies (CUDA: 2^31 - 1).
constexpr std::ptrdiff_t kPitchBytesMax = (std::ptrdiff_t{1} << 31) - 1;

// A copy costs about a microsecond in a batch, a kernel five whatever it moves.
constexpr std::size_t kCopiesMax = 4;
// Shorter rows keep the copy engines from their full speed.
constexpr std::size_t kRowBytesMin = 2048;

std::ptrdiff_t distance(const void* from, const void* to) {
  return static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from);
}

// Through integers: a buffer with absolute addresses starts at a null pointer.
std::byte* at(std::byte* base, std::ptrdiff_t offset_bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) +
                                      static_cast<std::uintptr_t>(offset_bytes));
}

bool usable_pitch(std::ptrdiff_t pitch_bytes, std::size_t row_bytes) {
  return pitch_bytes >= static_cast<std::ptrdiff_t>(row_bytes) && pitch_bytes <= kPitchBytesMax;
}

enum class Way { measured, kernel, copies };

Way way_of_tests() {
  static const Way way = [] {
    const char* text = std::getenv("ACCORD_TEST_PACK");
    const std::string_view word = text == nullptr ? "" : text;
    return word == "kernel" ? Way::kernel : word == "copies" ? Way::copies : Way::measured;
  }();
  return way;
}

// The CPU's own walk: dst and src of each piece.
template <class Visit>
void for_each_move(const LayoutCopy& copy, std::size_t first_bytes, std::size_t length_bytes,
                   Visit&& visit) {
  for_each_piece(*copy.type, first_bytes, length_bytes,
                 [&](std::ptrdiff_t offset, std::size_t packed, std::size_t length) {
                   std::byte* here = at(copy.elements, offset);
                   const bool pack = copy.direction == LayoutCopy::Direction::pack;
                   const auto move = [&](std::byte* there, std::size_t bytes) {
                     visit(pack ? there : here, pack ? here : there, bytes);
                     here = at(here, static_cast<std::ptrdiff_t>(bytes));
                   };
                   if (copy.form != LayoutCopy::Form::typed)
                     return move(at(copy.other, copy.other_offset(offset, packed)), length);
                   for_each_piece(*copy.other_type, packed, length,
                                  [&](std::ptrdiff_t other, std::size_t, std::size_t bytes) {
                                    move(at(copy.other, other), bytes);
                                  });
                 });
}

// Kernels follow runs on one side alone.
bool kernel_can_follow(const LayoutCopy& copy) {
  return copy.form != LayoutCopy::Form::typed || copy.other_type->regular();
}

// As elements of what an irregular type repeats, where all of them are in equal steps: these have
// fewer runs, and rectangles and kernels take as many elements as there are.
void unwrap(LayoutCopy& copy) {
  while (copy.type->repeated() && copy.form != LayoutCopy::Form::typed) {
    const Typemap& type = *copy.type;
    const Typemap& repeated = *type.repeated();
    const std::size_t skipped = copy.first_bytes / type.size_bytes();
    const std::size_t last = (copy.first_bytes + copy.length_bytes - 1) / type.size_bytes();
    if (skipped == last) {
      const std::ptrdiff_t skipped_bytes =
          static_cast<std::ptrdiff_t>(skipped) * type.extent_bytes();
      copy.elements = at(copy.elements, skipped_bytes);
      if (copy.form == LayoutCopy::Form::same) copy.other = at(copy.other, skipped_bytes);
      copy.first_bytes -= skipped * type.size_bytes();
    } else if (type.extent_bytes() !=
               static_cast<std::ptrdiff_t>(type.repetitions()) * repeated.extent_bytes()) {
      return;
    }
    copy.type = type.repeated();
  }
}

}  // namespace

LayoutCopy::Bounds LayoutCopy::bounds() const {
  const auto origin = [&](std::size_t packed_byte) {
    return static_cast<std::ptrdiff_t>(packed_byte / type->size_bytes()) * type->extent_bytes();
  };
  const auto [low, high] =
      std::minmax({origin(first_bytes), origin(first_bytes + length_bytes - 1)});
  return {low + type->low_bytes(), high + type->high_bytes()};
}

LayoutCopy::Bounds LayoutCopy::other_bounds() const {
  if (form == Form::same) return bounds();
  if (form == Form::typed) return {other_type->low_bytes(), other_type->high_bytes()};
  return {0, static_cast<std::ptrdiff_t>(length_bytes)};
}

std::shared_ptr<const Typemap> typemap_of(const Steps& runs) {
  Block block = Block::run(runs.run_bytes).moved(runs.first_offset_bytes);
  for (std::uint32_t level = 0; level < runs.level_count; ++level)
    block = block.repeated(runs.levels[level].count, runs.levels[level].step_bytes);
  return std::make_shared<const Typemap>(block, block.high_bytes() - block.low_bytes());
}

LayoutCopy packing_copy(const Steps& runs, std::byte* elements, std::size_t first_bytes,
                        std::size_t length_bytes, void* packed) {
  return {.type = typemap_of(runs),
          .elements = elements,
          .other = static_cast<std::byte*>(packed),
          .first_bytes = first_bytes,
          .length_bytes = length_bytes,
          .direction = LayoutCopy::Direction::pack};
}

void CopyList::append(void* dst, const void* src, std::size_t length_bytes) {
  if (length_bytes == 0) return;
  if (!copies_.empty()) {
    Copy& last = copies_.back();
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

void CopyList::append_rows(const Copy& rows) {
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

void CopyList::add(const CopyList& others) {
  copies_.insert(copies_.end(), others.copies_.begin(), others.copies_.end());
}

// The whole elements among the bytes, and what is cut off before and behind them.
void CopyList::append_rows(const LayoutCopy& copy) {
  const std::size_t element_bytes = copy.type->size_bytes();
  if (element_bytes == 0) return;
  const std::size_t end = copy.first_bytes + copy.length_bytes;
  const std::size_t low = (copy.first_bytes + element_bytes - 1) / element_bytes * element_bytes;
  const std::size_t high = end / element_bytes * element_bytes;
  // With no more elements than runs, steps are rather to be found among the runs.
  if (copy.type->dense() || copy.form == LayoutCopy::Form::typed || high <= low ||
      (high - low) / element_bytes <= copy.type->run_count()) {
    append_pieces(copy, copy.first_bytes, end);
    return;
  }
  append_pieces(copy, copy.first_bytes, low);
  append_elements(copy, low, (high - low) / element_bytes);
  append_pieces(copy, high, end);
}

void CopyList::append_pieces(const LayoutCopy& copy, std::size_t first_bytes,
                             std::size_t end_bytes) {
  for_each_move(
      copy, first_bytes, end_bytes - first_bytes,
      [this](void* dst, const void* src, std::size_t length) { append(dst, src, length); });
}

// Many elements of few runs: a rectangle for each run of all of them.
void CopyList::append_elements(const LayoutCopy& copy, std::size_t first_bytes,
                               std::size_t elements) {
  const Typemap& type = *copy.type;
  const auto step = static_cast<std::size_t>(type.extent_bytes());
  const std::size_t other_step = copy.form == LayoutCopy::Form::same ? step : type.size_bytes();
  const bool pack = copy.direction == LayoutCopy::Direction::pack;
  const auto origin =
      static_cast<std::ptrdiff_t>(first_bytes / type.size_bytes()) * type.extent_bytes();
  type.block().visit(origin, first_bytes, first_bytes, first_bytes + type.size_bytes(),
                     [&](std::ptrdiff_t offset, std::size_t packed, std::size_t length) {
                       void* here = at(copy.elements, offset);
                       void* there = at(copy.other, copy.other_offset(offset, packed));
                       append_rows(Copy{pack ? there : here, pack ? here : there, length, elements,
                                        pack ? other_step : step, pack ? step : other_step});
                     });
}

void CopyBatch::append(LayoutCopy copy) {
  if (copy.length_bytes == 0 || copy.type->run_count() == 0) return;
  unwrap(copy);
  if (copy.type->dense()) {
    plain.append_rows(copy);
  } else {
    laid_out.push_back(std::move(copy));
  }
}

void CopyBatch::add(CopyBatch&& others) {
  plain.add(others.plain);
  std::move(others.laid_out.begin(), others.laid_out.end(), std::back_inserter(laid_out));
}

bool kernel_pays(const LayoutCopy& copy) {
  const Typemap& type = *copy.type;
  if (type.dense() || type.run_count() == 0 || way_of_tests() == Way::copies ||
      !kernel_can_follow(copy))
    return false;
  if (way_of_tests() == Way::kernel) return true;
  std::size_t row_bytes = std::max<std::size_t>(1, type.size_bytes() / type.run_count());
  // Rows that end on one side or the other.
  if (copy.form == LayoutCopy::Form::typed)
    row_bytes = std::min(row_bytes, copy.other_type->steps().run_bytes);
  if (copy.length_bytes / row_bytes <= kCopiesMax) return false;
  const std::size_t elements = copy.length_bytes / type.size_bytes();
  const std::size_t copies = elements > type.run_count()
                                 ? type.run_count()
                                 : std::max<std::size_t>(1, elements) * type.rectangles();
  if (copies > kCopiesMax) return true;
  // A shadow is in host memory. Where a type fills half of its extent and more, engines move whole
  // lines there, kernels word by word (H200, 8 MiB in rows of 12 bytes every 16: 0.9 ms and 1.5).
  const bool is_filled = 2 * type.size_bytes() >= static_cast<std::size_t>(type.extent_bytes());
  if (copy.form == LayoutCopy::Form::same && is_filled) return false;
  return row_bytes < kRowBytesMin;
}

bool kernels_may_follow(const LayoutCopy& copy) {
  return way_of_tests() != Way::copies && kernel_can_follow(copy);
}

void copy_on_host(const CopyBatch& batch) {
  for (const Copy& copy : batch.plain.copies()) {
    for (std::size_t row = 0; row < copy.rows; ++row) {
      std::memcpy(static_cast<std::byte*>(copy.dst) + row * copy.dst_pitch_bytes,
                  static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes,
                  copy.row_bytes);
    }
  }
  for (const LayoutCopy& copy : batch.laid_out) {
    for_each_move(
        copy, copy.first_bytes, copy.length_bytes,
        [](void* dst, const void* src, std::size_t length) { std::memcpy(dst, src, length); });
  }
}

CopyList rows_of(const CopyBatch& batch) {
  CopyList list = batch.plain;
  for (const LayoutCopy& copy : batch.laid_out) {
    CopyList rows;
    rows.append_rows(copy);
    list.add(rows);
  }
  return list;
}

Status DeviceRuntime::copy_batch(int device, const CopyBatch& batch) {
  if (batch.laid_out.empty()) return copy(device, batch.plain.copies());
  return copy(device, rows_of(batch).copies());
}

Status DeviceRuntime::batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) {
  if (batch.laid_out.empty()) return copy_begin(device, batch.plain.copies(), ticket);
  return copy_begin(device, rows_of(batch).copies(), ticket);
}

}  // namespace accord::device
