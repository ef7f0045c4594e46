// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Cuts a failing program down to a few lines that still fail, and still are legal: the reference
// completes them.
#pragma once

#include <cstdint>
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

// `options` fails `program` with `message`.
Failure shrink(const Program& program, const RunOptions& options, const std::string& message);

}  // namespace accord::model
