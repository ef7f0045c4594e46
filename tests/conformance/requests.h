// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Completing requests in every way MPI has. How often a loop polls is not reproducible, so nothing
// here logs or draws from the case's own generators.
#pragma once

#include <vector>

#include "run.h"

namespace accord::conformance {

enum class Completion {
  wait,
  test,
  waitall,
  testall,
  waitany,
  testany,
  waitsome,
  testsome,
  get_status
};
const char* completion_name(Completion completion);
Completion random_completion(Rng& rng);

// Completes all requests of the array in the given way; null and inactive ones may be among them.
// `statuses`, if not null, gets one status a request, in the array's order. `orders` decides
// everything that is free (order of single waits). Returns the first error code.
int complete(const Run& run, Completion completion, std::vector<MPI_Request>& requests,
             std::vector<MPI_Status>* statuses, Rng orders);

// The same for one request.
int complete_one(const Run& run, MPI_Request& request, MPI_Status* status, Rng orders);

// The same for a started persistent collective.
int complete_persistent(const Run& run, MPI_Request& request, Rng orders);

// Logs what a program can learn from the status of a receive.
void log_status(Run& run, const MPI_Status& status, MPI_Datatype type);

}  // namespace accord::conformance
