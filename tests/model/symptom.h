// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What kind of failure a message of a run tells: the shrinker keeps it, so that what it prints is
// the mistake that was found and not another one that a smaller program has, too.
#pragma once

#include <string>

namespace accord::model {

enum class Symptom {
  none,
  wrong_data,    // in a buffer of the program, or in a status
  hang,          // a deadlock, or a run without end
  mismatch,      // the ranks' calls of the host MPI do not match each other
  mpi_misuse,    // another rule of MPI broken towards the host MPI
  device_error,  // a device, or its inbox server, used against its rules
  call_error,    // a call of the program gets an error
  left_over,     // requests, memory, messages after the end
};

const char* name_of(Symptom symptom);
// `message` as Scheduler::fail got it; empty: none.
Symptom symptom_of(const std::string& message);

}  // namespace accord::model
