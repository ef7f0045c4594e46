// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What groups have to see to although the program makes no call of theirs: they close what peers
// have withdrawn, withdraw what the program has freed, and free what all ranks have left. So freed
// memory stays allocated no longer than until its peers' next MPI call, whatever that is.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/frees.h"
#include "node/bell.h"

namespace accord::node {

namespace detail {
inline constinit std::atomic<std::uint64_t> times_heard{0};
inline constinit std::atomic<std::uint64_t> frees_seen{0};
inline constinit std::atomic<int> lent_allocations{0};  // of all groups of this process
bool is_time_to_look() noexcept;
void keep_house() noexcept;
}  // namespace detail

// In any MPI call, while nothing of ours is under way: to close or free memory may wait for
// kernels. Costs some loads where there is nothing to do; a process that lends memory looks now and
// then whether that still exists, since the program frees it by its vendor's functions.
inline void keep_house() noexcept {
  if (times_rung() != detail::times_heard.load(std::memory_order_relaxed) ||
      device::times_freed() != detail::frees_seen.load(std::memory_order_relaxed) ||
      (detail::lent_allocations.load(std::memory_order_relaxed) != 0 && detail::is_time_to_look()))
    detail::keep_house();
}

}  // namespace accord::node
