// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Tests of messages between two ranks: how they say what is wrong.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <string>

namespace accord::test {

inline int rank = 0;
inline int failures = 0;
inline const char* test_name = "";

inline void expect(bool good, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, test_name, how.c_str());
  ++failures;
}

inline int class_of(int code) {
  int klass = MPI_SUCCESS;
  MPI_Error_class(code, &klass);
  return klass;
}

// Until it is there, what a rank sends on is not before it in its queue.
inline void meet() { MPI_Barrier(MPI_COMM_WORLD); }

// What rank 0 sends and rank 1 receives.
inline void test(const char* name, const std::function<void()>& sender,
                 const std::function<void()>& receiver) {
  test_name = name;
  meet();
  if (rank == 0) sender();
  if (rank == 1) receiver();
  meet();
}

}  // namespace accord::test
