// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The figures of one size: what the table prints and the records hold. Free of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/statistics.h"

namespace accord::bench {

struct WaySummary {
  std::string way;
  std::string why_not;  // not empty: not measured, and there is nothing else
  Summary time_us;
  double bandwidth = 0;      // size / time, GB/s (10^9)
  double bus_bandwidth = 0;  // nccl-tests' correction for the operation, GB/s
  std::size_t samples = 0;
  int calls_per_sample = 1;
  std::size_t blocks = 0;
  std::uint64_t verified = 0;
  std::string fault;
  std::string path;
  std::string algorithm;
  std::string detail;
  Comparison against_ours;  // of peers
};

struct SizeSummary {
  std::string operation;
  std::size_t size_bytes = 0;
  int window = 0;                // 0: no window of messages
  std::vector<WaySummary> ways;  // ours first
};

// The fastest of the peers that were measured and gave right results; null when there is none.
inline const WaySummary* best_peer(const SizeSummary& row) {
  const WaySummary* best = nullptr;
  for (std::size_t i = 1; i < row.ways.size(); ++i) {
    const WaySummary& way = row.ways[i];
    const double ratio = way.against_ours.ratio.value;
    if (!way.why_not.empty() || !way.fault.empty() || ratio <= 0) continue;
    if (best == nullptr || ratio < best->against_ours.ratio.value) best = &way;
  }
  return best;
}

}  // namespace accord::bench
