// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One line on stderr that says what is being measured, rewritten in place.
#pragma once

#include <string>

#include "bench/options.h"

namespace accord::bench {

enum class Role { speaker, silent };  // only rank 0 speaks

class Progress {
 public:
  Progress(ProgressMode mode, Role role);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Where the run is, shown before every text: "[3 of 20] ".
  void set_position(std::string position) { position_ = std::move(position); }
  // Shows `text` unless the last one was shown a moment ago.
  void show(const std::string& text);
  // Removes the line; before anything is printed to stdout.
  void clear();

 private:
  bool enabled_;
  bool visible_ = false;
  double last_seconds_ = -1;
  std::string position_;
};

}  // namespace accord::bench
