// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/layout.h"

#include <algorithm>
#include <vector>

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

bool find_steps(const Segment& segment, device::Steps& runs) {
  const Typemap& type = *segment.type;
  if (!type.regular()) return false;
  runs = segment.count == 1
             ? type.steps()
             : Typemap(type.block().repeated(segment.count, type.extent_bytes()), 0).steps();
  runs.first_offset_bytes -= segment.low_bytes() - segment.offset_bytes;
  const bool found = runs.run_bytes != 0;
  if (runs.level_count == 0) runs = {};
  return found;
}

LayoutCopy copy_from_steps(const Segment& segment, void* user, std::size_t length_bytes,
                           std::byte* from, const device::Steps& runs) {
  if (runs.run_bytes != 0 && segment.type->dense())
    return device::packing_copy(runs, from, 0, length_bytes,
                                at(user, segment.offset_bytes + segment.type->low_bytes()));
  LayoutCopy copy =
      packed_copy(segment, user, 0, length_bytes, from, LayoutCopy::Direction::unpack);
  if (runs.run_bytes != 0) {
    copy.form = LayoutCopy::Form::typed;
    copy.other_type = device::typemap_of(runs);
  }
  return copy;
}

namespace {

// Addresses from `low` to before `high`.
struct Range {
  std::uintptr_t low;
  std::uintptr_t high;

  bool is_empty() const noexcept { return low >= high; }
  Range common(const Range& other) const noexcept {
    return {std::max(low, other.low), std::min(high, other.high)};
  }
};

Range span_of(const Segment& segment, void* user) {
  return {reinterpret_cast<std::uintptr_t>(at(user, segment.low_bytes())),
          reinterpret_cast<std::uintptr_t>(at(user, segment.high_bytes()))};
}

// What of a segment lies in `window`, in the order of addresses, without overlaps.
std::vector<Range> ranges_in(const Range& window, const Segment& segment, void* user) {
  std::vector<Range> ranges;
  for_each_piece(segment, 0, segment.size_bytes(),
                 [&](std::ptrdiff_t offset, std::size_t, std::size_t length) {
                   const auto low = reinterpret_cast<std::uintptr_t>(at(user, offset));
                   const Range inside = window.common({low, low + length});
                   if (!inside.is_empty()) ranges.push_back(inside);
                 });
  std::ranges::sort(ranges, {}, &Range::low);
  std::vector<Range> joined;
  for (const Range& range : ranges) {
    if (joined.empty() || joined.back().high < range.low)
      joined.push_back(range);
    else
      joined.back().high = std::max(joined.back().high, range.high);
  }
  return joined;
}

}  // namespace

std::byte* first_common_byte(const Segment& one, void* one_user, const Segment& other,
                             void* other_user) {
  if (one.size_bytes() == 0 || other.size_bytes() == 0) return nullptr;
  const Range window = span_of(one, one_user).common(span_of(other, other_user));
  if (window.is_empty()) return nullptr;
  const std::vector<Range> ones = ranges_in(window, one, one_user);
  const std::vector<Range> others = ranges_in(window, other, other_user);
  for (auto mine = ones.begin(), theirs = others.begin();
       mine != ones.end() && theirs != others.end();) {
    const Range common = mine->common(*theirs);
    if (!common.is_empty()) return reinterpret_cast<std::byte*>(common.low);
    ++(mine->high <= theirs->high ? mine : theirs);
  }
  return nullptr;
}

std::byte* run_of(const Segment& segment, void* user, std::size_t length_bytes) {
  if (segment.type->dense() && length_bytes != 0)
    return at(user, segment.offset_bytes + segment.type->low_bytes());
  const CopyBatch batch =
      packed_copies(segment, user, length_bytes, nullptr, LayoutCopy::Direction::pack);
  if (!batch.laid_out.empty() || batch.plain.copies().size() != 1) return nullptr;
  const device::Copy& run = batch.plain.copies()[0];
  return run.rows == 1 ? static_cast<std::byte*>(const_cast<void*>(run.src)) : nullptr;
}

}  // namespace accord::core
