// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What all of accord_programs shares: how this process stands in its job, and how the job ends.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>

#include "../conformance/flavour.h"

namespace accord::programs {

struct Job {
  int rank = 0;
  int size = 1;
  bool has_threads = false;  // MPI_THREAD_MULTIPLE
  bool on_devices = true;    // else all buffers are the host's
  int patience_s = 8;        // without progress, until the state is printed
  conformance::Flavour flavour;
};
extern Job job;

// Whether the host MPI itself can do `feature` (tests/conformance/known_defects.cpp).
inline bool works(const char* feature) {
  return conformance::known_defect(job.flavour, feature) == nullptr;
}

// Kinds of failures, by which a program is cut down.
enum class Symptom { data, error, hang, crash };
const char* name_of(Symptom symptom);

// What a failure prints: the program's number and text, and what the threads of this process are
// in.
void set_program(std::string text, std::function<std::string()> describe);
// Prints it with `what` and ends the job.
[[noreturn]] void fail(Symptom symptom, const std::string& what);
// Ends the job if `code` is not MPI_SUCCESS.
void check(int code, const char* call);

}  // namespace accord::programs
