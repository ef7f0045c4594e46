// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Counts what the program has freed by accord_free, so that whoever lends it looks at once. What it
// frees by its vendor's functions has to be looked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace accord::device {

namespace detail {
inline constinit std::atomic<std::uint64_t> times_freed{0};
}  // namespace detail

inline std::uint64_t times_freed() noexcept {
  return detail::times_freed.load(std::memory_order_relaxed);
}
inline void note_freed() noexcept { detail::times_freed.fetch_add(1, std::memory_order_relaxed); }

}  // namespace accord::device
