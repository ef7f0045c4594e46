// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Runs cases one after the other and keeps the ranks in step: every few cases they agree on what
// failed and whether to go on. Called by main.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run.h"

namespace accord::conformance {

class Driver {
 public:
  explicit Driver(Environment& environment) : environment_(environment) {}

  // Runs what the options ask for and prints the result from rank 0. Returns the process's exit
  // code.
  int run_all();

 private:
  struct Failure {
    std::int64_t case_number;
    std::string text;
  };

  void run_case(std::int64_t case_number);
  void judge(std::int64_t case_number, const std::vector<std::string>& lines,
             const std::string& description);
  // Collective: gathers the failures since the last time, prints each case once. Returns false to
  // stop.
  bool agree();
  std::vector<Failure> gather() const;
  void print(const std::vector<Failure>& failures);
  int summary();

  Environment& environment_;
  std::int64_t run_ = 0;
  std::int64_t failed_ = 0;
  std::int64_t failed_by_host_ = 0;
  std::int64_t skipped_ = 0;
  std::map<std::string, std::int64_t> skip_reasons_;
  std::vector<Failure> pending_;
  double started_s_ = 0;
};

}  // namespace accord::conformance
