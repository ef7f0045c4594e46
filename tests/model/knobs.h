// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Bounds of the library that a program chooses, since it is too short to reach those of users: only
// in the copies of sources that mutate.py writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace accord::model {

class Scheduler;

struct Knobs {
  std::size_t keys_max = 4096;     // kinds of calls that a mode table holds
  std::ptrdiff_t offers_max = 32;  // allocations that a rank lends at a time
  std::size_t known_max = 128;     // and that it remembers
  std::uint64_t idle_calls = 256;  // after which an offer gives way
  unsigned full_percent = 0;       // of sockets for descriptors
  bool late_trials = false;        // a trial that has not ended at the first look is given up on

  bool operator==(const Knobs&) const = default;
};

// Those of the running job, whose generator `scheduler` has; null: after it.
extern Knobs knobs;
void set_knobs(const Knobs& wanted, Scheduler* scheduler);

// Of a socket; errno says so where it has none.
bool has_room();

// In place of giving the processor away.
void take_turns();

}  // namespace accord::model
