// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "scheduler.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace accord::model {
namespace {

// Polls of one thread without any event after which it has seen all there is to see: every delay of
// the modelled world is far shorter, and so is the longest time for which a lock is held in turns.
constexpr unsigned kStuckPolls = 3000;
// From here on it most likely waits for ever: to take turns at that is what a deadlock costs.
constexpr unsigned kIdlePolls = kStuckPolls / 4;
constexpr std::uint64_t kIdleSwitchOneIn = 64;
// Far above what any program of the tests needs.
constexpr std::uint64_t kStepsMax = 10'000'000;
// Free mode: a run that takes so many times the limit does not end, whatever events it has.
constexpr int kRunLimits = 12;

// One thread at a time runs, so one processor does: to wake a thread on another takes far longer,
// above all where the machine has other work.
void stay_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(processor), &only);
  (void)sched_setaffinity(0, sizeof only, &only);  // where that is not to be had, it takes longer
}

thread_local std::uint64_t g_free_random = 0;
std::atomic<std::uint64_t> g_free_threads{0};

}  // namespace

thread_local Scheduler::Thread* Scheduler::self_ = nullptr;

Scheduler::Scheduler(Mode mode, std::uint64_t seed) : mode_(mode), seed_(seed), random_(seed) {
  switch_one_in_ = std::uint64_t{1} << random_.below(5);
}

void Scheduler::run(std::vector<std::function<void()>> bodies) {
  threads_.clear();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    threads_.push_back(std::make_unique<Thread>());
    sem_init(&threads_.back()->turn, 0, 0);
  }
  live_ = bodies.size();
  std::vector<std::thread> threads;
  const int processor = sched_getcpu();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    threads.emplace_back([this, i, &bodies, processor] {
      if (mode_ == Mode::baton && processor >= 0) stay_on(processor);
      start(i, bodies[i]);
    });
  }
  if (mode_ == Mode::baton) {
    sem_post(&choose(nullptr)->turn);
  } else {
    watch();
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& thread : threads_) sem_destroy(&thread->turn);
}

void Scheduler::start(std::size_t index, const std::function<void()>& body) {
  Thread& me = *threads_[index];
  self_ = &me;
  if (mode_ == Mode::baton) sem_wait(&me.turn);
  try {
    body();
  } catch (const Aborted&) {
  }
  event();
  self_ = nullptr;
  me.live = false;
  if (mode_ == Mode::free) {
    live_.fetch_sub(1);
    return;
  }
  if (live_.fetch_sub(1) > 1) sem_post(&choose(&me)->turn);
}

void Scheduler::yield() {
  if (mode_ == Mode::free) {
    if (self_ != nullptr && failed()) throw Aborted();
    const std::uint64_t pick = random(64);
    if (pick < 8) std::this_thread::yield();
    if (pick == 63) std::this_thread::sleep_for(std::chrono::microseconds(20));
    return;
  }
  if (failed()) throw Aborted();
  Thread& me = *self_;
  const std::uint64_t now = epoch_.load(std::memory_order_relaxed);
  if (me.epoch != now) {
    me.epoch = now;
    me.polls = 0;
  }
  if (++me.polls >= kStuckPolls && stuck()) report_deadlock();
  if (++steps_ > kStepsMax) fail("the run does not end: " + std::to_string(kStepsMax) + " steps");
  const std::uint64_t switch_one_in = me.polls >= kIdlePolls ? kIdleSwitchOneIn : switch_one_in_;
  if (me.polls >= kStuckPolls || random_.below(switch_one_in) == 0) pass_baton(&me);
}

void Scheduler::pass_baton(Thread* from) {
  Thread* next = choose(from);
  if (next == nullptr || next == from) return;
  sem_post(&next->turn);
  sem_wait(&from->turn);
  if (failed()) throw Aborted();
}

// Any live thread but `from`, or `from` when it is the last. Weights change now and then, so that
// some threads are slow for a while.
Scheduler::Thread* Scheduler::choose(const Thread* from) {
  if (random_.below(48) == 0) {
    for (auto& thread : threads_) thread->weight = std::uint64_t{1} << (2 * random_.below(4));
  }
  std::uint64_t total = 0;
  for (const auto& thread : threads_)
    total += thread->live && thread.get() != from ? thread->weight : 0;
  if (total == 0) {
    for (const auto& thread : threads_) {
      if (thread->live) return thread.get();
    }
    return nullptr;
  }
  std::uint64_t ticket = random_.below(total);
  for (const auto& thread : threads_) {
    if (!thread->live || thread.get() == from) continue;
    if (ticket < thread->weight) return thread.get();
    ticket -= thread->weight;
  }
  return nullptr;
}

bool Scheduler::stuck() const {
  const std::uint64_t now = epoch_.load(std::memory_order_relaxed);
  for (const auto& thread : threads_) {
    if (thread->live && (thread->epoch != now || thread->polls < kStuckPolls)) return false;
  }
  return true;
}

// What every thread is doing, a line each.
std::string Scheduler::states() const {
  std::string text;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const bool live = threads_[i]->live.load();
    const std::string what =
        describe_thread ? describe_thread(i) : "thread " + std::to_string(i) + " of the run";
    text += "\n    " + what + (live ? "" : " (has ended)");
  }
  return text;
}

void Scheduler::report_deadlock() {
  fail("deadlock: every thread polls and nothing changes" + states());
}

void Scheduler::record(const std::string& message) {
  const std::lock_guard<std::mutex> locked(failure_mutex_);
  if (!failed_.load()) failure_ = message;
  failed_.store(true);
}

void Scheduler::fail(const std::string& message) {
  record(message);
  if (self_ != nullptr) throw Aborted();
}

std::string Scheduler::failure() const {
  const std::lock_guard<std::mutex> locked(failure_mutex_);
  return failure_;
}

std::uint64_t Scheduler::random(std::uint64_t bound) {
  if (mode_ == Mode::baton) return random_.below(bound);
  if (g_free_random == 0)
    g_free_random = seed_ + 0x632be59bd9b4e019ull * (g_free_threads.fetch_add(1) + 1);
  Random mine(g_free_random);
  g_free_random = mine.next() | 1;
  return g_free_random / 2 % bound;
}

std::chrono::milliseconds Scheduler::hang_limit() {
  constexpr double kSeconds = 10;
  const char* const given = std::getenv("ACCORD_MODEL_HANG_SECONDS");
  const double seconds = given == nullptr ? kSeconds : std::strtod(given, nullptr);
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Free mode: threads of a deadlocked run cannot be unwound for certain (one may be the engine's
// own), so the process ends, which every test runner reports.
void Scheduler::end_process(const std::string& why) const {
  std::fprintf(stderr, "%s; seed of the run: %llu%s\n", why.c_str(),
               static_cast<unsigned long long>(seed_), states().c_str());
  std::abort();
}

void Scheduler::watch() {
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds limit = hang_limit();
  const auto in_text = [](std::chrono::milliseconds time) {
    return std::to_string(time.count()) + " ms";
  };
  const Clock::time_point begin = Clock::now();
  Clock::time_point last_event = begin;
  std::uint64_t seen = epoch_.load();
  while (live_.load() > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const Clock::time_point now = Clock::now();
    if (const std::uint64_t epoch = epoch_.load(); epoch != seen) {
      seen = epoch;
      last_event = now;
    }
    if (now - last_event > limit) end_process("deadlock: no event for " + in_text(limit));
    if (now - begin > kRunLimits * limit)
      end_process("the run does not end: " + in_text(kRunLimits * limit));
  }
}

}  // namespace accord::model
