// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "watchdog.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "job.h"

namespace accord::programs {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);

std::mutex mutex;
std::function<std::uint64_t()> progress;
std::vector<pthread_t>& threads() {
  static std::vector<pthread_t> all;
  return all;
}
char crash_text[256];

// Async-signal-safe.
void print_stack(int, siginfo_t*, void*) {
  void* frames[40];
  backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
}

void on_crash(int signal_number, siginfo_t* info, void* context) {
  signal(SIGABRT, SIG_DFL);
  const int length =
      std::snprintf(crash_text, sizeof crash_text, "programs: signal %d on rank %d, address %p\n",
                    signal_number, job.rank, info->si_addr);
  if (write(STDERR_FILENO, crash_text, static_cast<std::size_t>(length)) < 0) _exit(1);
  print_stack(signal_number, info, context);
  // What the threads are in is worth the risk of a handler that takes locks.
  alarm(3);
  fail(Symptom::crash, "signal " + std::to_string(signal_number));
}

void install(int signal_number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

void look_on() {
  // Looks are counted, not time: where the whole machine stands still, nobody hangs.
  std::uint64_t seen = 0;
  int looks = 0;
  for (;;) {
    std::this_thread::sleep_for(kLookEvery);
    const std::lock_guard<std::mutex> locked(mutex);
    const std::uint64_t now = progress ? progress() : seen + 1;
    looks = now == seen ? looks + 1 : 0;
    seen = now;
    if (looks * kLookEvery < std::chrono::seconds(job.patience_s)) continue;
    for (const pthread_t thread : threads()) {
      pthread_kill(thread, SIGUSR2);
      std::this_thread::sleep_for(kLookEvery);
    }
    fail(Symptom::hang, "no progress");
  }
}

}  // namespace

void start_watchdog() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what a handler could not
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) install(number, on_crash);
  install(SIGUSR2, print_stack);
  std::thread(look_on).detach();
}

void watch(std::function<std::uint64_t()> next) {
  const std::lock_guard<std::mutex> locked(mutex);
  progress = std::move(next);
}

void stop_watching() { watch({}); }

WatchedThread::WatchedThread() : self_(pthread_self()) {
  const std::lock_guard<std::mutex> locked(mutex);
  threads().push_back(self_);
}

WatchedThread::~WatchedThread() {
  const std::lock_guard<std::mutex> locked(mutex);
  std::erase(threads(), self_);
}

}  // namespace accord::programs
