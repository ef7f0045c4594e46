// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which sources this was built from, for reports of errors and records of benchmarks. Thread-safe.
#pragma once

namespace accord {

// Twelve digits of git's commit, with "-dirty" where files differed from it. Empty where git did
// not know, and in what is not libaccord.so.
const char* commit() noexcept;

}  // namespace accord
