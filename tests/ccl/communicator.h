// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A communicator of a stand-in for a collective library: the ranks that have joined it, its state,
// and what the environment says is to go wrong with it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "segment.h"

namespace accord::fake {

// With NCCL's numbers.
enum class Outcome {
  success = 0,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

// Puts down why a call fails.
Outcome fail(Outcome outcome, const std::string& why);
// What was put down last, by any thread.
const char* last_error();

// From the environment: PREFIX_FAIL_INIT and so on (fake_nccl.h has the list).
struct Faults {
  explicit Faults(const char* prefix);

  int init_rank;
  long call;
  long message;
  long launch;
  int call_rank;
  bool late;
  int device;
  std::chrono::milliseconds patience;
};

enum class Mode { blocking, nonblocking };

struct Member {
  int rank;
  int rank_count;
  Mode mode = Mode::blocking;
};

class Communicator {
 public:
  // `name` is the prefix of its settings.
  Communicator(const Member& member, const char* name)
      : rank(member.rank), rank_count(member.rank_count), mode(member.mode), faults(name) {}

  // Waits for all ranks.
  Outcome join(std::span<const char> id);
  // The rank's device: its rank, unless the environment says otherwise.
  int device() const { return faults.device < 0 ? rank : faults.device; }
  // What keeps a rank from waiting on.
  Outcome trouble() const;
  // An error is for good, and for all ranks.
  void break_off(Outcome outcome);

  const int rank;
  const int rank_count;
  const Mode mode;
  const Faults faults;
  std::unique_ptr<Segment> segment;
  std::atomic<Outcome> state = Outcome::in_progress;
  std::atomic<bool> aborted = false;

 private:
  Outcome meet(Shared& shared);
};

// How long a rank waits for others. Ranks that share a core get nowhere unless those that wait let
// go of it.
class Patience {
 public:
  explicit Patience(const Communicator& communicator) : limit_(communicator.faults.patience) {}
  // Whether there is some left, after a short while.
  bool wait();
  void renew();

 private:
  std::chrono::milliseconds limit_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int waits_ = 0;
};

}  // namespace accord::fake
