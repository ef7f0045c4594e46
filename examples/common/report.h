// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the applications have in common around their work: where a rank runs, medians, and the line
// that `accord bench --app` reads.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace app {

inline int rank_in_node(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank;
}

// Takes at least one value; of an even number, the upper of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The largest value that a rank of `comm` has.
inline double largest(double mine, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm);
  return mine;
}

struct Times {
  double us = 0;      // of the slowest rank
  double mpi_us = 0;  // the part of it that is spent in MPI calls
};

// A line for people and one for programs. `words` says which case this is, without quotes.
inline void report(const char* app, const std::string& words, const std::string& memory,
                   const Times& times, double error, bool correct) {
  std::printf("%s in %s memory: %.1f us, %.1f of them in MPI; error %.1e: %s\n", words.c_str(),
              memory.c_str(), times.us, times.mpi_us, error, correct ? "correct" : "WRONG");
  std::printf(
      "{\"app\": \"%s\", \"case\": \"%s\", \"memory\": \"%s\", \"us\": %.3f, \"mpi_us\": %.3f, "
      "\"error\": %.3e, \"correct\": %s}\n",
      app, words.c_str(), memory.c_str(), times.us, times.mpi_us, error,
      correct ? "true" : "false");
}

}  // namespace app
