// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>

#include "base/config.h"

namespace accord::log {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"error", "warn", "info", "debug", "trace"};
constexpr int kUnknown = -1;

// Plain atomics without destructors, and write(2) below: usable before main and while the process
// exits.
std::atomic<int> least_level{kUnknown};
std::atomic<int> own_rank{kUnknown};

int level_of_config() noexcept {
  try {
    const Text& name = config().log;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] == name) return static_cast<int>(i);
    }
  } catch (...) {  // out of memory: the message that says so is worth more than the setting
  }
  return static_cast<int>(Level::warn);
}

}  // namespace

bool enabled(Level level) noexcept {
  int least = least_level.load(std::memory_order_relaxed);
  if (least == kUnknown) {
    least = level_of_config();
    least_level.store(least, std::memory_order_relaxed);
  }
  return static_cast<int>(level) <= least;
}

void write(Level level, std::string_view message) {
  fmt::memory_buffer line;
  const int rank = own_rank.load(std::memory_order_relaxed);
  fmt::format_to(std::back_inserter(line), "accord: {}: ", kNames[static_cast<std::size_t>(level)]);
  if (rank != kUnknown) fmt::format_to(std::back_inserter(line), "[rank {}] ", rank);
  fmt::format_to(std::back_inserter(line), "{}\n", message);
  // One write a line, so that lines of ranks that share a terminal do not mix.
  const char* next = line.data();
  std::size_t left = line.size();
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, next, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody listens; there is no better place to complain
    next += written;
    left -= static_cast<std::size_t>(written);
  }
}

void set_rank(int rank) noexcept { own_rank.store(rank, std::memory_order_relaxed); }

}  // namespace accord::log
