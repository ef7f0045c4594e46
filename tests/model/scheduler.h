// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Runs the threads of a modelled job. In baton mode exactly one runs at a time and a seeded
// generator decides at every yield who is next: a run is replayed by its seed, and a deadlock is
// seen exactly, as the state in which every thread keeps polling and nothing changes. In free mode
// the threads really run at once, for the sanitizers. Knows nothing of MPI or of Accord.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "random.h"

namespace accord::model {

// Unwinds the threads of a run that has failed.
struct Aborted {};

class Scheduler {
 public:
  enum class Mode { baton, free };

  Scheduler(Mode mode, std::uint64_t seed);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs all bodies, each in a thread of its own, until the last one has returned or been unwound.
  void run(std::vector<std::function<void()>> bodies);

  // A point at which another thread may go on. Throws Aborted in a run that has failed.
  void yield();

  // Says that the modelled world has changed: whoever polls has a reason to go on polling.
  void event() noexcept { epoch_.fetch_add(1, std::memory_order_relaxed); }

  // Ends the run; the first message is kept. Throws Aborted when called by a thread of the run.
  void fail(const std::string& message);

  // A number below `bound` from the run's generator (in free mode, from the calling thread's own).
  std::uint64_t random(std::uint64_t bound);

  bool failed() const noexcept { return failed_.load(); }
  std::string failure() const;
  Mode mode() const noexcept { return mode_; }

  // Asked for when a deadlock is reported: what thread `index` is doing.
  std::function<std::string(std::size_t index)> describe_thread;

  // Free mode: no event for so long is a deadlock. ACCORD_MODEL_HANG_SECONDS, for a sanitizer or a
  // loaded machine, says otherwise.
  static std::chrono::milliseconds hang_limit();

 private:
  struct Thread {
    sem_t turn;
    std::atomic<bool> live{true};
    std::uint64_t epoch = 0;  // of the last poll
    unsigned polls = 0;       // since that epoch began
    std::uint64_t weight = 1;
  };

  void start(std::size_t index, const std::function<void()>& body);
  void pass_baton(Thread* from);
  Thread* choose(const Thread* from);
  bool stuck() const;
  void record(const std::string& message);
  void report_deadlock();
  std::string states() const;
  [[noreturn]] void end_process(const std::string& why) const;
  void watch();

  static thread_local Thread* self_;

  const Mode mode_;
  const std::uint64_t seed_;
  Random random_;
  std::uint64_t switch_one_in_ = 1;
  std::uint64_t steps_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<std::size_t> live_{0};
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

}  // namespace accord::model
