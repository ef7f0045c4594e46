// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Random legal programs. Every round of every event gets a tick of one global order. A participant
// starts its share at its tick or in any gap between earlier ticks, and completes it at its tick or
// in any later gap; a blocking call does both at the tick. So at every tick all shares of the round
// have been started and nobody has been made to wait for anything later: executing by ticks never
// deadlocks, whatever is delayed, and since no call of these programs depends on which of several
// matches it gets, neither does any other execution. What the order of ticks leaves free (how
// early, how late, in which order, by which call) is random.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "program.h"
#include "random.h"

namespace accord::model::generator {

using Verb = Action::Verb;

// Tick t is at 2t, the gap after it at [2t + 1, 2t + 1.9).
constexpr double kGapWidth = 0.9;
inline double at_tick(int tick) { return 2.0 * tick; }
inline double gap_start(int gap) { return 2.0 * gap + 1; }
inline int gap_of(double key) { return static_cast<int>(std::floor((key - 1) / 2)); }
inline bool in_gap(double key) { return key - gap_start(gap_of(key)) < kGapWidth && key >= 1; }

struct Draft {
  double key;
  Action action;
};

// A share that is pending between two keys on one thread.
struct Pending {
  Ref ref;
  std::size_t thread = 0;  // that completes it
  int tick = 0;
  double started = 0;
  double ended = 0;
  bool waited = true;    // ends by a wait, not by MPI_Request_free
  bool touched = false;  // some call may complete it before its own end
  bool sure = false;     // none may
};

struct CommState {
  std::vector<double> available;   // by world rank
  std::vector<double> last_start;  // of a collective
  std::vector<int> thread;         // that calls its collectives
  bool alive = true;
  bool has_persistent = false;
};

struct Tick {
  enum class Kind { round, init, probed };
  int event;
  int round;
  Kind kind;
};

class Generator {
 public:
  Generator(std::uint64_t seed, const GeneratorOptions& options)
      : random_(seed), options_(options) {}
  Program make();

 private:
  void plan();
  void plan_event(int comm_choice);
  void plan_message(Event& event);
  void plan_collective(Event& event);
  void plan_pairs(Event& event, std::size_t members);
  void plan_comm();
  void plan_exchange();
  void plan_inboxes();
  void plan_memory();
  void plan_calls();
  int add_event(Event event);
  void add_comm(std::vector<int> members);
  End random_end(const Event& event);
  void random_shape(Event& event);

  void place();
  void place_collective(int tick, const Tick& what);
  void place_message(int tick, const Tick& what);
  void place_init(int tick, const Tick& what);
  void place_cancelled(int tick, const Tick& what);
  void place_share(int tick, const Ref& ref, double low, bool may_block, int tick_end);
  void finish_persistent();
  double start_key(double low, int tick);
  double wait_key(int tick, double high);
  int next_tick(const Ref& ref, int tick) const;

  void add_tests();
  void add_waits();
  void add_wait_group(std::size_t thread, std::vector<std::size_t> group);

  void add(std::size_t thread, double key, Verb verb, std::vector<Ref> refs) {
    drafts_[thread].push_back({key, {verb, std::move(refs)}});
  }
  double uniform() { return static_cast<double>(random_.below(1000)) / 1000.0; }
  std::size_t thread_of(const Part& part) const {
    return static_cast<std::size_t>(part.rank * program_.threads + part.thread);
  }
  const Event& event_of(const Ref& ref) const {
    return program_.events[static_cast<std::size_t>(ref.event)];
  }
  const Part& part_of(const Ref& ref) const {
    return event_of(ref).parts[static_cast<std::size_t>(ref.part)];
  }
  double& last(const Ref& ref) {  // key of the last start (persistent: end) of an event's part
    return last_[static_cast<std::size_t>(ref.event)][static_cast<std::size_t>(ref.part)];
  }

  Random random_;
  const GeneratorOptions options_;
  Program program_;
  std::vector<CommState> comms_;
  std::vector<Tick> ticks_{{0, 0, Tick::Kind::round}};  // ticks start at 1
  int setup_ticks_ = 0;
  unsigned device_percent_ = 50;
  std::vector<std::size_t> sizes_;
  std::vector<Collective> collectives_;  // to choose from
  bool storm_ = false;                   // almost only collectives, few keys, many calls of each
  unsigned pooled_percent_ = 0;          // of buffers in device memory that come from pools
  int pools_ = 1;                        // of a rank
  bool alike_ = false;  // almost all buffers are plain memory of one device, for zero-copy
  std::vector<std::vector<double>> last_;
  std::vector<std::vector<Draft>> drafts_;
  std::vector<Pending> pending_;
};

}  // namespace accord::model::generator
