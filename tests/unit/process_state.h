// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the threads of another process are at, as /proc tells: a signal reaches one after the other.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace accord::test {

// Whether each is in one of these states, or gone.
inline bool all_threads_are(std::string_view states, pid_t process) {
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  std::filesystem::directory_iterator task(tasks, error);
  for (; !error && task != end(task); task.increment(error)) {
    std::ifstream stat(task->path() / "stat");
    std::string line;
    if (!std::getline(stat, line)) continue;
    const std::size_t name_ends = line.rfind(") ");
    if (name_ends == std::string::npos || states.find(line[name_ends + 2]) == states.npos)
      return false;
  }
  return true;
}

// Until then, for 20 seconds.
inline bool wait_until_all_threads_are(std::string_view states, pid_t process) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!all_threads_are(states, process)) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::usleep(1000);
  }
  return true;
}

// By SIGSTOP.
inline bool wait_until_stopped(pid_t process) { return wait_until_all_threads_are("T", process); }
// Nobody may have waited for it yet. All its files are closed.
inline bool wait_until_ended(pid_t process) { return wait_until_all_threads_are("ZX", process); }

}  // namespace accord::test
