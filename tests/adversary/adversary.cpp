// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "adversary.h"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace accord::adversary {
namespace {

using Clock = std::chrono::steady_clock;

const char* variable(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = variable(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// As the launchers of MPICH and Open MPI tell it: decisions are made before MPI_Init, too.
std::uint64_t read_rank() { return number("PMI_RANK", number("OMPI_COMM_WORLD_RANK", 0)); }

std::uint64_t rank() {
  static const std::uint64_t read = read_rank();
  return read;
}

Settings read_settings() {
  Settings read;
  read.seed = number("ACCORD_TEST_ADVERSARY_SEED", read.seed);
  read.looks_max = static_cast<unsigned>(number("ACCORD_TEST_ADVERSARY_LOOKS", read.looks_max));
  read.pause_percent =
      static_cast<unsigned>(number("ACCORD_TEST_ADVERSARY_PAUSES", read.pause_percent));
  // Equal on all ranks.
  read.synchronous_sends =
      static_cast<Often>(number("ACCORD_TEST_ADVERSARY_SENDS", (read.seed + 1) % 3) % 3);
  read.synchronous_collectives =
      number("ACCORD_TEST_ADVERSARY_COLLECTIVES", read.seed / 3 % 2) != 0;
  return read;
}

// splitmix64
struct Chance {
  std::uint64_t state = 0;
  std::uint64_t next() {
    std::uint64_t bits = state += 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  }
};

Chance chance_of_thread() {
  static std::atomic<std::uint64_t> threads{0};
  return {settings().seed * 0x10001U + rank() * 0x101U + threads.fetch_add(1) * 0x1000003U};
}

// The fault that was asked for. Guarded by `mutex`, but for a look whether there is any.
struct Fault {
  std::atomic<bool> waits{false};
  std::mutex mutex;
  std::uint64_t calls_left = 0;
  std::string function;  // empty: any
};

void ask_for(Fault& fault, std::uint64_t nth, const char* function) {
  const std::lock_guard locked(fault.mutex);
  fault.calls_left = nth;
  fault.function = function != nullptr ? function : "";
  fault.waits = nth > 0;
}

// ACCORD_TEST_ADVERSARY_FAIL=RANK:N or RANK:N:FUNCTION.
Fault& fault() {
  static Fault& kept = []() -> Fault& {
    Fault& made = *new Fault;
    const char* const text = variable("ACCORD_TEST_ADVERSARY_FAIL");
    char* rest = nullptr;
    if (text == nullptr || std::strtoull(text, &rest, 10) != rank() || *rest != ':') return made;
    const std::uint64_t nth = std::strtoull(rest + 1, &rest, 10);
    ask_for(made, nth, *rest == ':' ? rest + 1 : nullptr);
    return made;
  }();
  return kept;
}

// Sleeps in each call until then.
thread_local Clock::time_point slow_until{};

void sleep_us(std::uint64_t time_us) { (void)usleep(static_cast<useconds_t>(time_us)); }

}  // namespace

const Settings& settings() {
  static const Settings read = read_settings();
  return read;
}

Counts& counts() {
  static Counts& kept = *new Counts;
  return kept;
}

std::uint64_t draw() {
  thread_local Chance chance = chance_of_thread();
  return chance.next();
}

void report() {
  const Counts& done = counts();
  (void)std::fprintf(stderr,
                     "adversary: rank %lu, seed %lu: %lu looks refused, %lu completions reordered, "
                     "%lu completions withheld, %lu probes refused, %lu sends made synchronous, "
                     "%lu barriers, %lu pauses, %lu slow phases, %lu faults\n",
                     rank(), settings().seed, done.looks.load(), done.reordered.load(),
                     done.withheld.load(), done.probes.load(), done.sends.load(),
                     done.barriers.load(), done.pauses.load(), done.phases.load(),
                     done.faults.load());
}

void linger() {
  const std::uint64_t drawn = below(10000);
  const std::uint64_t limit = settings().pause_percent * 100U;
  if (slow_until != Clock::time_point{}) {
    if (Clock::now() < slow_until) return sleep_us(10 + drawn % 64);
    slow_until = {};
  }
  if (drawn >= limit) return;
  counts().pauses.fetch_add(1, std::memory_order_relaxed);
  if (drawn * 50 < limit) {
    counts().phases.fetch_add(1, std::memory_order_relaxed);
    slow_until = Clock::now() + std::chrono::microseconds(100 + below(2900));
  } else if (drawn * 4 < limit) {
    sleep_us(1 + below(200));
  } else {
    (void)sched_yield();
  }
}

bool fault_is_due(std::string_view name, Asked how) {
  Fault& asked = fault();
  if (!asked.waits.load(std::memory_order_relaxed)) return false;
  const std::lock_guard locked(asked.mutex);
  const bool is_any = asked.function.empty() && how == Asked::anyhow;
  if (!asked.waits || (!is_any && asked.function != name)) return false;
  if (--asked.calls_left > 0) return false;
  asked.waits = false;
  return true;
}

int fail(MPI_Comm comm, const char* name) {
  counts().faults.fetch_add(1);
  (void)std::fprintf(stderr, "adversary: rank %lu: MPI_%s reports a failure\n", rank(), name);
  if (comm != MPI_COMM_NULL) (void)REAL(Comm_call_errhandler)(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

}  // namespace accord::adversary

void accord_adversary_fail(std::uint64_t nth, const char* function) {
  accord::adversary::ask_for(accord::adversary::fault(), nth, function);
}

std::uint64_t accord_adversary_faults() { return accord::adversary::counts().faults.load(); }
