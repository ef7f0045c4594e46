// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "watchdog.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace accord::conformance {
namespace {

constexpr int kHangCode = 3;
constexpr int kCrashCode = 4;
constexpr int kFramesMax = 40;
constexpr auto kLookEvery = std::chrono::milliseconds(200);

using Clock = std::chrono::steady_clock;

// Written by the main thread, read by the watchdog and by signal handlers: plain arrays, since a
// handler can take no lock and must find something printable whenever it runs.
char rerun_text[4096];
char case_text[4096];
char pending_text[4096];
int world_rank = 0;
pthread_t main_thread;
std::atomic<Clock::rep> armed_at{0};  // 0: disarmed

void set_text(char* target, std::size_t capacity, const char* text) {
  const std::size_t length = std::min(std::strlen(text), capacity - 1);
  target[length] = '\0';
  std::memcpy(target, text, length);
}

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// One write a line, so that ranks do not mix; only async-signal-safe calls besides snprintf into a
// local.
void print_case(const char* what) {
  char line[16384];
  std::snprintf(line, sizeof line, "%sCASE %s on rank %d: %s\n  rerun: %s\n", pending_text, what,
                world_rank, case_text, rerun_text);
  say(line);
}

void print_stack() {
  void* frames[kFramesMax];
  backtrace_symbols_fd(frames, backtrace(frames, kFramesMax), STDERR_FILENO);
}

void on_crash(int signal_number, siginfo_t* info, void*) {
  char what[96];
  std::snprintf(what, sizeof what, "CRASHED (signal %d, address %p)", signal_number, info->si_addr);
  print_case(what);
  print_stack();
  _exit(kCrashCode);
}

// An MPI that aborts often just calls exit.
void on_exit_called() {
  if (armed_at.load() != 0) print_case("ENDED THE PROCESS");
}

void on_dump(int, siginfo_t*, void*) { print_stack(); }

void install(int signal_number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

void watch(std::chrono::duration<double> limit) {
  for (;;) {
    std::this_thread::sleep_for(kLookEvery);
    const Clock::rep at = armed_at.load();
    if (at == 0 || Clock::now() - Clock::time_point(Clock::duration(at)) < limit) continue;
    print_case("HANGS");
    pthread_kill(main_thread, SIGUSR2);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // the other ranks find out, too
    _exit(kHangCode);
  }
}

}  // namespace

void watchdog_start(int rank, double limit_s) {
  world_rank = rank;
  main_thread = pthread_self();
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what a handler could not
  for (int signal_number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    install(signal_number, on_crash);
  install(SIGUSR2, on_dump);
  std::atexit(on_exit_called);
  std::thread(watch, std::chrono::duration<double>(limit_s)).detach();
}

void watchdog_arm(const std::string& rerun) {
  set_text(rerun_text, sizeof rerun_text, rerun.c_str());
  set_text(case_text, sizeof case_text, "");
  armed_at.store(Clock::now().time_since_epoch().count());
}

void watchdog_describe(const char* text) { set_text(case_text, sizeof case_text, text); }

void watchdog_pending(const std::string& text) {
  set_text(pending_text, sizeof pending_text, text.c_str());
}

void watchdog_disarm() { armed_at.store(0); }

}  // namespace accord::conformance
