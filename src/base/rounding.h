// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <cstddef>

namespace accord {

// How many parts of `part` it takes for `total`; the last may be shorter.
constexpr std::size_t divide_up(std::size_t total, std::size_t part) noexcept {
  return (total + part - 1) / part;
}

// The next multiple of `granule`.
constexpr std::size_t round_up(std::size_t bytes, std::size_t granule) noexcept {
  return divide_up(bytes, granule) * granule;
}

}  // namespace accord
