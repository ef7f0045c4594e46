// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// For how long a peer that somebody waits for has not been heard. It is asked for a sign of life
// again and again, which its process gives whatever its program does, and is given up when none has
// come for as long as the caller's patience. Time in which nobody waited does not count, nor
// does time in which this process itself stood still.
#pragma once

#include <algorithm>
#include <chrono>

namespace accord {

class Silence {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Next { wait, ask, give_up };

  void hear(Clock::time_point now) noexcept { since_ = now; }
  // To be called again and again while somebody waits.
  Next look(Clock::time_point now, Clock::duration patience) noexcept {
    constexpr int kQuestions = 8;
    if (now - looked_at_ > patience / 2) since_ = now;
    looked_at_ = now;
    if (now - since_ >= patience) return Next::give_up;
    if (now - std::max(since_, asked_at_) < patience / kQuestions) return Next::wait;
    asked_at_ = now;
    return Next::ask;
  }

 private:
  Clock::time_point since_{};
  Clock::time_point looked_at_{};
  Clock::time_point asked_at_{};
};

}  // namespace accord
