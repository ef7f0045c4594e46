// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Turns a program that hangs or crashes into its text and what each thread of this process is in.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <string>

namespace accord::programs {

// Starts the thread, and the handlers of signals that end a process.
void start_watchdog();
// Asks for a number that changes with all progress.
void watch(std::function<std::uint64_t()> progress);
void stop_watching();

// A thread whose stack is printed with a hang.
class WatchedThread {
 public:
  WatchedThread();
  ~WatchedThread();
  WatchedThread(const WatchedThread&) = delete;
  WatchedThread& operator=(const WatchedThread&) = delete;

 private:
  pthread_t self_;
};

}  // namespace accord::programs
