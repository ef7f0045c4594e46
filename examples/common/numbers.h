// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <cstdint>

#include "grid.h"

namespace app {

// A number from -1 to 1 that a point of a grid always has, whichever rank asks.
inline double number_of_point(const Triple& size, int x, int y, int z) {
  auto bits = (static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(size[1]) +
               static_cast<std::uint64_t>(y)) *
                  static_cast<std::uint64_t>(size[2]) +
              static_cast<std::uint64_t>(z) + 1;
  // The odd constants spread the bits of neighbours apart.
  bits *= 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 32U)) * 0xd6e8feb86659fd93U;
  bits ^= bits >> 32U;
  return static_cast<double>(bits >> 11U) / static_cast<double>(1ULL << 52U) - 1;
}

}  // namespace app
