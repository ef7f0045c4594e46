// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether a thread of the proxy gets a core when it wants one. The kernel counts how long it ran,
// and how long it could have but waited for a core. One that waits for much of its time takes
// longer than whoever does without it, and takes its core from a rank. Used by that thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "node/descriptor.h"

namespace accord::proxy {

class CoreWatch {
 public:
  // `path`: where the kernel says it; empty: of the thread that calls first.
  explicit CoreWatch(std::string path = {}) : path_(std::move(path)) {}

  // Of the time since it said so last, where that is long enough to say; no where nobody knows.
  bool is_starved();

 private:
  using Nanoseconds = std::chrono::nanoseconds;
  bool read(Nanoseconds& ran, Nanoseconds& waited);

  const std::string path_;
  node::Descriptor file_;
  bool is_open_ = false;
  bool is_starved_ = false;
  Nanoseconds ran_{};
  Nanoseconds waited_{};
};

}  // namespace accord::proxy
