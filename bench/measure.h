// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The heart of the benchmark: one size of one operation, measured in all ways in alternating blocks
// and verified. Collective. Rank 0 holds the results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/buffer.h"
#include "bench/progress.h"
#include "bench/way.h"

namespace accord::bench {

struct WayResult {
  std::string way;
  std::string why_not;             // not empty: not measured
  std::vector<double> samples_us;  // of the slowest rank, for one message
  std::vector<double> block_medians_us;
  int calls_per_sample = 1;
  std::uint64_t verified = 0;  // elements checked, on all ranks
  std::string fault;           // not empty: the result was wrong
  std::string path;
  std::string algorithm;
  std::string detail;
};

struct SizeResult {
  std::size_t size_bytes = 0;
  Shape shape;
  std::string why_not;          // not empty: this size and all larger ones cannot be measured
  std::vector<WayResult> ways;  // all of them, also where none was measured
};

// The program's buffers, kept from size to size.
struct ProgramBuffers {
  explicit ProgramBuffers(const Session& session)
      : send(session.accord.get(), session.options.send_memory),
        recv(session.accord.get(), session.options.recv_memory) {}
  Buffer send;
  Buffer recv;
};

SizeResult measure_size(const Session& session, const Operation& operation, std::size_t size_bytes,
                        const std::vector<Way*>& ways, ProgramBuffers& buffers, Progress& progress);

}  // namespace accord::bench
