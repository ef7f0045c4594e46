// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the bytes of an MPI buffer lie: typemaps flattened to runs, and the copies that move
// exactly those bytes. Gap bytes of a derived type are never part of a run, so they are never
// written. Knows no mpi.h: the shim reads a datatype's typemap off the host MPI and hands it over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "device/device_runtime.h"

namespace accord::core {

// A contiguous run of one element, in typemap order: its bytes start at `offset_bytes` from the
// element's address and at `packed_bytes` in the packed element.
struct Run {
  std::ptrdiff_t offset_bytes;
  std::size_t length_bytes;
  std::size_t packed_bytes;
};

// As a run's offset: packed bytes that stand for no memory (padding inside a long double, which
// some MPIs do not move). They are neither read nor written.
inline constexpr std::ptrdiff_t kPadding = std::numeric_limits<std::ptrdiff_t>::min();

// One element of a datatype. Immutable, shared by all buffers of the type.
class Typemap {
 public:
  // `runs` in typemap order; merged where one continues the other.
  Typemap(std::vector<Run> runs, std::ptrdiff_t extent_bytes);
  static std::shared_ptr<const Typemap> contiguous(std::size_t size_bytes);

  const std::vector<Run>& runs() const noexcept { return runs_; }
  std::ptrdiff_t extent_bytes() const noexcept { return extent_bytes_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  std::ptrdiff_t low_bytes() const noexcept { return low_bytes_; }    // first byte touched
  std::ptrdiff_t high_bytes() const noexcept { return high_bytes_; }  // one past the last
  // True when consecutive elements form one contiguous run.
  bool dense() const noexcept { return dense_; }

 private:
  std::vector<Run> runs_;
  std::ptrdiff_t extent_bytes_;
  std::size_t size_bytes_ = 0;
  std::ptrdiff_t low_bytes_ = 0;
  std::ptrdiff_t high_bytes_ = 0;
  bool dense_ = false;
};

// `count` elements of a type, the first at `offset_bytes` from the buffer's address.
struct Segment {
  std::shared_ptr<const Typemap> type;
  std::size_t count = 0;
  std::ptrdiff_t offset_bytes = 0;

  std::size_t size_bytes() const noexcept { return type ? type->size_bytes() * count : 0; }
  std::ptrdiff_t low_bytes() const noexcept;
  std::ptrdiff_t high_bytes() const noexcept;
};

// Collects byte copies; joins neighbours into longer rows and equal steps into rectangles, so that
// a strided type costs one 2-D copy and not one copy a row.
class CopyList {
 public:
  void append(void* dst, const void* src, std::size_t length_bytes);
  void append_rows(const device::Copy& rows);
  const std::vector<device::Copy>& copies() const noexcept { return copies_; }
  bool empty() const noexcept { return copies_.empty(); }

 private:
  std::vector<device::Copy> copies_;
};

// Calls visit(offset_from_buffer, packed_offset, length) for each contiguous piece of the bytes
// [first, first + length) of the packed form of `segment`, in typemap order.
template <class Visit>
void for_each_piece(const Segment& segment, std::size_t first_bytes, std::size_t length_bytes,
                    Visit&& visit) {
  const std::size_t element_bytes = segment.type->size_bytes();
  if (element_bytes == 0 || length_bytes == 0) return;
  if (segment.type->dense()) {
    visit(
        segment.offset_bytes + segment.type->low_bytes() + static_cast<std::ptrdiff_t>(first_bytes),
        first_bytes, length_bytes);
    return;
  }
  const std::size_t end_bytes = first_bytes + length_bytes;
  std::size_t element = first_bytes / element_bytes;
  for (std::size_t base = element * element_bytes; base < end_bytes;
       base += element_bytes, ++element) {
    const std::ptrdiff_t origin =
        segment.offset_bytes + static_cast<std::ptrdiff_t>(element) * segment.type->extent_bytes();
    for (const Run& run : segment.type->runs()) {
      const std::size_t low = std::max(first_bytes, base + run.packed_bytes);
      const std::size_t high = std::min(end_bytes, base + run.packed_bytes + run.length_bytes);
      if (low >= high) continue;
      const std::size_t skipped = low - base - run.packed_bytes;
      visit(origin + run.offset_bytes + static_cast<std::ptrdiff_t>(skipped), low, high - low);
    }
  }
}

}  // namespace accord::core
