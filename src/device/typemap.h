// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which bytes an element of a derived datatype is made of, in typemap order. Gap bytes are in no
// run, so nobody who follows a typemap ever touches them. Knows no MPI: the shim reads off the host
// MPI how a datatype was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/blocks.h"
#include "device/runs.h"

namespace accord::device {

// One element of a datatype. Immutable, shared by all buffers of the type.
class Typemap {
 public:
  Typemap(Block block, std::ptrdiff_t extent_bytes);
  // `runs` in typemap order; merged where one continues the other.
  Typemap(const std::vector<Run>& runs, std::ptrdiff_t extent_bytes);
  static std::shared_ptr<const Typemap> contiguous(std::size_t size_bytes);

  const Block& block() const noexcept { return block_; }
  std::ptrdiff_t extent_bytes() const noexcept { return extent_bytes_; }
  std::size_t size_bytes() const noexcept { return block_.size_bytes(); }
  std::ptrdiff_t low_bytes() const noexcept { return low_bytes_; }    // first byte touched
  std::ptrdiff_t high_bytes() const noexcept { return high_bytes_; }  // one past the last
  // True when consecutive elements form one contiguous run.
  bool dense() const noexcept { return dense_; }

  std::size_t run_count() const noexcept { return run_count_; }
  // One by one, for kernels that follow irregular types: made when first asked for.
  const std::vector<Run>& runs() const;
  const Steps& steps() const noexcept { return steps_; }
  bool regular() const noexcept { return steps_.run_bytes != 0; }
  // How many copies of equal rows in equal steps one element takes.
  std::size_t rectangles() const noexcept;
  // Of an irregular type in equal steps: what it repeats, as a type with the step for its extent.
  const std::shared_ptr<const Typemap>& repeated() const noexcept { return repeated_; }
  // How often.
  std::size_t repetitions() const noexcept { return block_.levels().back().count; }
  // Bits that are set in any offset, length or packed offset of a run, or in the packed size: what
  // they are all multiples of.
  std::uintptr_t run_bits() const noexcept { return block_.bits() | block_.size_bytes(); }
  std::uint64_t id() const noexcept { return id_; }  // never used twice in a process

 private:
  Block block_;
  std::ptrdiff_t extent_bytes_;
  std::ptrdiff_t low_bytes_ = 0;
  std::ptrdiff_t high_bytes_ = 0;
  std::size_t run_count_;
  bool dense_ = false;
  Steps steps_;
  std::shared_ptr<const Typemap> repeated_;
  mutable std::once_flag runs_made_;
  mutable std::vector<Run> runs_;
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
    type.block().visit(static_cast<std::ptrdiff_t>(element) * type.extent_bytes(), base,
                       first_bytes, end_bytes, visit);
  }
}

}  // namespace accord::device
