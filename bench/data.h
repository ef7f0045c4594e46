// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Filling the buffers before a verified call and checking them after it. Local; in pieces, so that
// device memory of any size needs little of the host's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/way.h"

namespace accord::bench {

// The data of this run's next verified call: differs in every call of this function.
Pattern fresh_pattern(const Session& session, const Operation& operation);

void fill_send(const Session& session, const Trial& trial, const Buffers& buffers,
               const Pattern& pattern);
// Overwrites the receive buffer with bytes that no result has.
void poison_recv(const Session& session, const Trial& trial, const Buffers& buffers);
// Changes one byte of the result: what the checks must find (ACCORD_TEST_BENCH_CORRUPT).
void corrupt_recv(const Session& session, const Trial& trial, const Buffers& buffers);

struct Verdict {
  std::uint64_t checked = 0;  // elements
  std::uint64_t wrong = 0;    // pieces with a wrong element
  std::string first;          // "element 17: expected 5, got 4"
};
Verdict check_recv(const Session& session, const Trial& trial, const Buffers& buffers,
                   const Pattern& pattern);

}  // namespace accord::bench
