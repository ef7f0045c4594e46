// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Progress in blocking calls of a host MPI that calls functions of others from there: what a thread
// does where it may call MPI from several (Engine::allow_threads). Knows no mpi.h.
#pragma once

#include "core/engine.h"

namespace accord::core {

// From here on the host MPI calls progress_in_blocking_call.
void expect_calls_of_host() noexcept;

// One pass over all active operations where this thread is in a blocking call of the host MPI, in a
// BlockingRegion. Anywhere else it may hold what they need: then nothing.
void progress_in_blocking_call(Engine& engine) noexcept;

}  // namespace accord::core
