// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a kernel follows a layout: a word of the packed form is found among the elements by
// arithmetic alone, or among their runs where these are irregular. The same for the CPU
// (host/pack.cpp) and for kernels (cuda/pack_kernels.cu, level_zero/pack_kernels.clcpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/reduction.h"
#include "device/runs.h"

// Loops that kernels had better keep: unrolled, their code does not fit the instruction cache.
#ifdef __CUDACC__
#define ACCORD_ROLLED _Pragma("unroll 1")
#else
#define ACCORD_ROLLED
#endif

namespace accord::device {

// The only parameter of the kernels, by value. All lengths and addresses are multiples of the word.
struct PackArguments {
  std::byte* elements;  // address of the element that the first byte is in
  std::byte* other;
  std::uint64_t first_bytes;  // in the packed form of that element
  std::uint64_t length_bytes;
  std::uint64_t element_bytes;  // packed
  std::int64_t extent_bytes;
  const Run* runs;  // null: regular
  std::uint64_t run_count;
  Steps steps;
  std::uint32_t packs;        // 1: to `other`, 0: from there
  std::uint32_t same_layout;  // 1: `other` is the counterpart of `elements`, 0: of the first byte,
                              // unless it has steps of its own:
  Steps other_steps;          // no bytes: it has none
  std::uint64_t other_first_bytes;  // the first byte in the packed form of what has these
};

constexpr std::size_t kPackWordBytesMax = 16;

// Offset of a packed byte of an element whose runs are in nested equal steps.
template <class Index>
ACCORD_HOST_DEVICE inline std::int64_t locate_in(const Steps& steps, Index packed) {
  Index run = packed / static_cast<Index>(steps.run_bytes);
  std::int64_t offset =
      steps.first_offset_bytes +
      static_cast<std::int64_t>(packed - run * static_cast<Index>(steps.run_bytes));
  ACCORD_ROLLED
  for (std::uint32_t level = 0; level < steps.level_count; ++level) {
    const Index rest = run / static_cast<Index>(steps.levels[level].count);
    const Index digit = run - rest * static_cast<Index>(steps.levels[level].count);
    offset += static_cast<std::int64_t>(digit) * steps.levels[level].step_bytes;
    run = rest;
  }
  return offset;
}

// Offset of a packed byte from `elements`; kPadding where it stands for no memory. `Index` holds
// every packed offset: a division of 32 bits takes a kernel a third of the time of one of 64.
template <class Index>
ACCORD_HOST_DEVICE inline std::int64_t locate(const PackArguments& arguments, Index packed) {
  const Index element = packed / static_cast<Index>(arguments.element_bytes);
  const Index within = packed - element * static_cast<Index>(arguments.element_bytes);
  const std::int64_t origin = static_cast<std::int64_t>(element) * arguments.extent_bytes;
  if (arguments.runs != nullptr) {
    std::uint64_t low = 0;  // the last run that starts no later is in [low, high)
    std::uint64_t high = arguments.run_count;
    ACCORD_ROLLED
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (arguments.runs[middle].packed_bytes <= within ? low : high) = middle;
    }
    const Run run = arguments.runs[low];
    const std::uint64_t skipped = within - run.packed_bytes;  // huge before the first run
    if (skipped >= run.length_bytes) return kPadding;
    return origin + run.offset_bytes + static_cast<std::int64_t>(skipped);
  }
  return origin + locate_in<Index>(arguments.steps, within);
}

// Where word number `word` of the copy comes from and where it goes; false: it stands for no
// memory.
template <class Index>
ACCORD_HOST_DEVICE inline bool locate_word(const PackArguments& arguments, std::size_t word_bytes,
                                           std::uint64_t word, std::byte*& dst,
                                           const std::byte*& src) {
  const std::uint64_t moved = word * word_bytes;
  const std::int64_t offset =
      locate<Index>(arguments, static_cast<Index>(arguments.first_bytes + moved));
  if (offset == kPadding) return false;
  std::byte* const here = arguments.elements + offset;
  const std::int64_t other_offset =
      arguments.other_steps.run_bytes != 0
          ? locate_in<Index>(arguments.other_steps,
                             static_cast<Index>(arguments.other_first_bytes + moved))
      : arguments.same_layout != 0 ? offset
                                   : static_cast<std::int64_t>(moved);
  std::byte* const there = arguments.other + other_offset;
  dst = arguments.packs != 0 ? there : here;
  src = arguments.packs != 0 ? here : there;
  return true;
}

struct LayoutCopy;

// The copy as a kernel gets it: its runs, where it has some, are the typemap's own.
PackArguments pack_arguments(const LayoutCopy& copy);

// The largest word, at most 16 bytes, that the copy is made of.
std::size_t pack_word_bytes(const LayoutCopy& copy, const PackArguments& arguments);

// Whether 32 bits hold every packed offset of the copy.
bool pack_is_narrow(const PackArguments& arguments);

}  // namespace accord::device
