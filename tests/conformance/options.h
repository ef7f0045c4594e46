// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Command line of accord_conformance and the one line that reruns a case. Knows no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "accord/accord.h"

namespace accord::conformance {

// ACCORD_TEST_CONFORMANCE_CORRUPT: what the harness breaks on purpose, to show that it notices.
enum class Corruption { none, data, gap, guard, input, hang, crash };

struct Options {
  std::uint64_t seed = 1;
  std::int64_t first = 0;
  std::int64_t count = 1000;
  std::int64_t single_case = -1;
  std::vector<std::string> only;
  double seconds = 0;  // 0: no limit
  double case_timeout_s = 60;
  std::size_t bytes_max = 1U << 20;
  int ranks = 0;  // 0: as many as there are
  int failures_max = 20;
  bool device_required = false;
  bool verbose = false;
  bool threads = false;  // MPI_THREAD_MULTIPLE, for cases in which several threads call MPI
  std::vector<accord_memory> memory;  // empty: everything there is
  std::string program;

  std::size_t chunk_bytes = 4U << 20;  // ACCORD_CHUNK_BYTES and ACCORD_PIPELINE_BYTES, where set:
  std::size_t pipeline_bytes = 1U << 20;  // cases aim at their edges
  Corruption corruption = Corruption::none;
};

// Reads the command line and the environment. Returns an empty string, or one sentence for the
// user.
std::string parse_options(int argc, char** argv, Options& options);

extern const char* const kUsage;

// "ACCORD_CHUNK_BYTES=1K mpiexec -n 4 accord_conformance --seed 7 --case 12 ...": reruns exactly
// this case.
std::string rerun_line(const Options& options, int ranks, std::int64_t case_number);

}  // namespace accord::conformance
