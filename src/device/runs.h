// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a typemap is made of. Included by kernels too, hence no more than integers here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace accord::device {

// A contiguous run of one element, in typemap order: its bytes start at `offset_bytes` from the
// element's address and at `packed_bytes` in the packed element.
struct Run {
  std::ptrdiff_t offset_bytes;
  std::size_t length_bytes;
  std::size_t packed_bytes;
};

// As a run's offset: packed bytes that stand for no memory (padding inside a long double, which
// some MPIs do not move). They are neither read nor written.
constexpr std::ptrdiff_t kPadding = INT64_MIN;

// Runs of one length in nested equal steps, as of vectors and subarrays. Run number i starts at
// first_offset_bytes plus, for each level, a step for each unit of i's digit there; the first level
// counts fastest.
struct Steps {
  static constexpr unsigned kLevelsMax = 4;
  struct Level {
    std::uint64_t count;
    std::int64_t step_bytes;
  };
  std::uint64_t run_bytes = 0;  // 0: the runs are not like that
  std::int64_t first_offset_bytes = 0;
  std::uint32_t level_count = 0;
  Level levels[kLevelsMax] = {};
};

}  // namespace accord::device
