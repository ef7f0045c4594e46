// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace accord::bench {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(ProgressMode mode, Role role)
    : enabled_(role == Role::speaker &&
               (mode == ProgressMode::on ||
                (mode == ProgressMode::automatic && isatty(STDERR_FILENO) != 0))) {}

void Progress::show(const std::string& text) {
  constexpr double kIntervalSeconds = 0.1;
  if (!enabled_) return;
  const double now = now_seconds();
  if (visible_ && now - last_seconds_ < kIntervalSeconds) return;
  last_seconds_ = now;
  visible_ = true;
  std::fprintf(stderr, "\r\033[K%s%s", position_.c_str(), text.c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!visible_) return;
  visible_ = false;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace accord::bench
