// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether calls come close enough upon each other that a kernel which stays on the device for them
// is worth it. To have it there takes milliseconds, so they have to come in rows: each that follows
// close upon another counts for it, each gap against it. Rows may be as short as those of one step
// of a program (the corners of a grid's halo, eight); single ones and pairs never suffice.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/config.h"

namespace accord::device {

class CallCredit {
 public:
  // With each call.
  bool is_enough() noexcept {
    constexpr int kLeast = 16;
    const auto now = Clock::now().time_since_epoch().count();
    const Clock::duration since(now - last_.exchange(now, std::memory_order_relaxed));
    const bool follows = since < std::chrono::microseconds(config().linger_us);
    const int before = credit_.load(std::memory_order_relaxed);
    const int credit = std::clamp(before + (follows ? 1 : -1), 0, 2 * kLeast);
    credit_.store(credit,
                  std::memory_order_relaxed);  // lost or counted twice among threads: no harm
    return credit >= kLeast;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::atomic<Clock::rep> last_{0};
  std::atomic<int> credit_{0};
};

}  // namespace accord::device
