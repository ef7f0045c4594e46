// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// ACCORD_TRACE=1: one line on stderr for each call that Accord handled: what, which path, how long.
#pragma once

#include <fmt/core.h>

#include <chrono>

#include "base/config.h"
#include "base/log.h"
#include "core/collective.h"

namespace accord::shim {

class Trace {
 public:
  explicit Trace(const char* name) : name_(config().trace ? name : nullptr) {
    if (name_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  ~Trace() {
    if (name_ == nullptr) return;
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start_;
    log::write(log::Level::info,
               fmt::format("{} -> {} {:.1f} us", name_, core::last_path(), elapsed.count()));
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 private:
  const char* name_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace accord::shim
