// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which bytes an element of a derived datatype is made of: runs of bytes in typemap order, and,
// where these follow one another in equal steps, those steps. Gap bytes are in no run, so nobody
// who follows a typemap ever touches them. Knows no MPI: the shim reads a datatype's typemap off
// the host MPI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/runs.h"

namespace accord::device {

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

  const Steps& steps() const noexcept { return steps_; }
  bool regular() const noexcept { return steps_.run_bytes != 0; }
  // How many copies of equal rows in equal steps one element takes.
  std::size_t rectangles() const noexcept;
  // Bits that are set in any offset, length or packed offset of a run, or in the packed size: what
  // they are all multiples of.
  std::uintptr_t run_bits() const noexcept { return run_bits_; }
  std::uint64_t id() const noexcept { return id_; }  // never used twice in a process

 private:
  std::vector<Run> runs_;
  std::ptrdiff_t extent_bytes_;
  std::size_t size_bytes_ = 0;
  std::ptrdiff_t low_bytes_ = 0;
  std::ptrdiff_t high_bytes_ = 0;
  bool dense_ = false;
  Steps steps_;
  std::uintptr_t run_bits_ = 0;
  std::uint64_t id_;
};

// Calls visit(offset, packed_offset, length) for each contiguous piece of the bytes
// [first, first + length) of the packed form of elements that follow one another, in typemap order;
// offsets count from the address of the first element.
template <class Visit>
void for_each_piece(const Typemap& type, std::size_t first_bytes, std::size_t length_bytes,
                    Visit&& visit) {
  const std::size_t element_bytes = type.size_bytes();
  if (element_bytes == 0 || length_bytes == 0) return;
  if (type.dense()) {
    visit(type.low_bytes() + static_cast<std::ptrdiff_t>(first_bytes), first_bytes, length_bytes);
    return;
  }
  const std::size_t end_bytes = first_bytes + length_bytes;
  std::size_t element = first_bytes / element_bytes;
  for (std::size_t base = element * element_bytes; base < end_bytes;
       base += element_bytes, ++element) {
    const std::ptrdiff_t origin = static_cast<std::ptrdiff_t>(element) * type.extent_bytes();
    for (const Run& run : type.runs()) {
      const std::size_t low = std::max(first_bytes, base + run.packed_bytes);
      const std::size_t high = std::min(end_bytes, base + run.packed_bytes + run.length_bytes);
      if (low >= high) continue;
      const std::size_t skipped = low - base - run.packed_bytes;
      visit(origin + run.offset_bytes + static_cast<std::ptrdiff_t>(skipped), low, high - low);
    }
  }
}

}  // namespace accord::device
