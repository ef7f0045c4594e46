// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One program as part of this job: the lists of this rank in threads, and what must hold at the
// end.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "program.h"

namespace accord::programs {

// On all ranks alike. `control` is a communicator of the caller's, `name` what a failure calls the
// program.
void run_program(const model::Program& program, std::uint64_t seed, MPI_Comm control,
                 const std::string& name);

}  // namespace accord::programs
