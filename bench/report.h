// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// From measurements to what is shown: figures of every size, the lines above the tables, and the
// faults. Only rank 0 speaks.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/record.h"
#include "bench/summary.h"
#include "bench/table.h"

namespace accord::bench {

class Report {
 public:
  // Throws when --json cannot be written.
  explicit Report(const Session& session);

  void begin_operation(const Operation& operation);
  void add(const Operation& operation, const SizeResult& result);
  // A size that cannot be measured: the records of its ways, and a note.
  void leave_out(const Operation& operation, const SizeResult& result, const std::string& text);
  // A note below or between the tables, once for each text.
  void note(const std::string& text);

  bool found_fault() const { return found_fault_; }

 private:
  void print_facts(const RunFacts& facts);

  const Session& session_;
  bool speaks_;
  bool found_fault_ = false;
  std::set<std::string> notes_;
  std::unique_ptr<Table> table_;
  std::unique_ptr<RecordWriter> records_;
};

}  // namespace accord::bench
