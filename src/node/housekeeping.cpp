// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/housekeeping.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "node/group.h"
#include "node/outbox.h"

namespace accord::node {

namespace {

const char* idle_time_of_test() noexcept {
  static const char* const given = std::getenv("ACCORD_TEST_DEVICE_IDLE_MS");
  return given;
}

}  // namespace

std::chrono::steady_clock::duration idle_time() noexcept {
  if (const char* const given = idle_time_of_test())
    return std::chrono::milliseconds(std::strtol(given, nullptr, 10));
  return std::chrono::seconds(10);
}

std::size_t idle_device_bytes() noexcept {
  return idle_time_of_test() != nullptr ? 0 : std::size_t{16} << 20;
}

}  // namespace accord::node

namespace accord::node::detail {
namespace {

using Clock = std::chrono::steady_clock;

// At least from one look at what is lent to the next, and no more than this part of the time is
// spent on them.
constexpr std::chrono::milliseconds kLookPeriod{1};
constexpr int kLookPart = 100;

std::atomic<Clock::rep> next_look{0};
std::atomic_flag is_busy;

}  // namespace

bool is_time_to_look() noexcept {
  constexpr unsigned kCallsPerTime = 8;  // the clock takes longer than the rest
  static thread_local unsigned calls = 0;
  return ++calls % kCallsPerTime == 0 &&
         Clock::now().time_since_epoch().count() >= next_look.load(std::memory_order_relaxed);
}

// What is rung or freed while another thread is at it is left for the next call.
void keep_house() noexcept {
  if (is_busy.test_and_set(std::memory_order_acquire)) return;
  const Clock::time_point begin = Clock::now();
  times_heard.store(times_rung(), std::memory_order_relaxed);
  frees_seen.store(device::times_freed(), std::memory_order_relaxed);
  Group::tidy();
  Outbox::tidy_all(idle_time());
  const Clock::time_point end = Clock::now();
  const Clock::duration pause = std::max<Clock::duration>(kLookPeriod, kLookPart * (end - begin));
  next_look.store((end + pause).time_since_epoch().count(), std::memory_order_relaxed);
  is_busy.clear(std::memory_order_release);
}

}  // namespace accord::node::detail
