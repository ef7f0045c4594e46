// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Cuts a failing program down to a few lines that still fail, in the same way (symptom.h), and
// still are legal: the reference completes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "program.h"
#include "runner.h"

namespace accord::model {

struct Failure {
  Program program;
  RunOptions options;
  std::string message;
  std::string text() const;  // the program, what went wrong, and the seed of the schedule
};

using RunProgram = std::function<std::string(const Program&, const RunOptions&)>;

// `options` fails `program` with `message`. Candidates are run by `run_program`.
Failure shrink(const Program& program, const RunOptions& options, const std::string& message,
               RunProgram run_program = run);

}  // namespace accord::model
