// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How much device memory this library takes for itself in this process, for people and tests
// (accord_info_json).
#pragma once

#include <atomic>
#include <cstddef>

namespace accord::device {

struct OwnMemory {
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::size_t> most_bytes{0};  // at any time

  void add(std::size_t more) noexcept {
    const std::size_t now = bytes.fetch_add(more, std::memory_order_relaxed) + more;
    std::size_t most = most_bytes.load(std::memory_order_relaxed);
    while (most < now && !most_bytes.compare_exchange_weak(most, now)) {
    }
  }
  void remove(std::size_t less) noexcept { bytes.fetch_sub(less, std::memory_order_relaxed); }
};
inline constinit OwnMemory own_memory;

}  // namespace accord::device
