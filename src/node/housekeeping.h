// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What groups have to see to although the program makes no call of theirs: they close what peers
// have withdrawn, withdraw what the program has freed, and free what all ranks have left. So freed
// memory stays allocated no longer than until its peers' next MPI call, whatever that is.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "device/frees.h"
#include "node/bell.h"

namespace accord::node {

// How long device memory of ours that nothing needs is kept, beyond so much a process.
// ACCORD_TEST_DEVICE_IDLE_MS: tests wait less, and keep nothing.
std::chrono::steady_clock::duration idle_time() noexcept;
std::size_t idle_device_bytes() noexcept;

namespace detail {
inline constinit std::atomic<std::uint64_t> times_heard{0};
inline constinit std::atomic<std::uint64_t> frees_seen{0};
inline constinit std::atomic<int> things_to_look_after{0};  // what is lent, and areas of outboxes
bool is_time_to_look() noexcept;
void keep_house() noexcept;
}  // namespace detail

// In any MPI call, while nothing of ours is under way: to close or free memory may wait for
// kernels. Costs some loads where there is nothing to do; a process that lends memory looks now and
// then whether that still exists, since the program frees it by its vendor's functions.
inline void keep_house() noexcept {
  if (times_rung() != detail::times_heard.load(std::memory_order_relaxed) ||
      device::times_freed() != detail::frees_seen.load(std::memory_order_relaxed) ||
      (detail::things_to_look_after.load(std::memory_order_relaxed) != 0 &&
       detail::is_time_to_look()))
    detail::keep_house();
}

}  // namespace accord::node
