// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What people read: one table an operation on stdout, one line a size. Microseconds below 64 KiB,
// bus bandwidth from there on. Knows nothing of MPI.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bench/summary.h"

namespace accord::bench {

class Table {
 public:
  // `said` holds the remarks printed by earlier tables, so that each is made once.
  Table(std::string title, std::set<std::string>& said) : title_(std::move(title)), said_(said) {}
  // Prints the row; before the first the heading and why some ways are missing.
  void print(const SizeSummary& row);

 private:
  void print_heading(const SizeSummary& row);

  std::string title_;
  std::set<std::string>& said_;
  bool started_ = false;
  std::vector<std::size_t> columns_;  // the peers that can be measured here
};

}  // namespace accord::bench
