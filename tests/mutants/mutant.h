// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Included ahead of each source of a tree of mutants (mutants.py). ACCORD_MUTANT says which mistake
// this process makes; 0 or nothing: none. ACCORD_MUTANTS_REACHED names a folder in which each
// process leaves a file with the numbers of those that it came by.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace accord::mutants {

constexpr int kMost = 1024;

// At once, since a process may be killed, by which its destructors never run.
inline void note(int number) {
  static const int file = [] {
    const char* folder = std::getenv("ACCORD_MUTANTS_REACHED");
    if (folder == nullptr) return -1;
    char name[4096];
    std::snprintf(name, sizeof name, "%s/%d", folder, static_cast<int>(::getpid()));
    return ::open(name, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  }();
  char line[16];
  const int length = std::snprintf(line, sizeof line, "%d\n", number);
  if (file >= 0 && ::write(file, line, static_cast<std::size_t>(length)) != length) std::abort();
}

inline bool is_on(int number) {
  static const int active = [] {
    const char* text = std::getenv("ACCORD_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  static std::atomic<bool> noted[kMost];
  if (!noted[number].load(std::memory_order_relaxed) && !noted[number].exchange(true)) note(number);
  return number == active;
}

}  // namespace accord::mutants
