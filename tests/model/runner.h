// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Runs a program on the fake MPI, directly or through Accord's core, and judges it: data against
// the plan, inputs unchanged, gaps and guards intact, nothing left over, no deadlock, no mismatch.
#pragma once

#include <memory>
#include <string>

#include "failing.h"
#include "model_shim.h"
#include "program.h"

namespace accord::model {

struct RunOptions {
  enum class Backend {
    reference,  // no Accord, host buffers, perfect progress, everything as synchronizing as can be
    native,     // no Accord, host buffers, the unkind fake MPI
    accord,
  };
  Backend backend = Backend::accord;
  Scheduler::Mode mode = Scheduler::Mode::baton;
  std::uint64_t seed = 1;  // of the schedule
  Mutation mutation = Mutation::none;
  Failing failure{};
  // The ranks see each other's calls at once. Always so in programs; calls that differ would be
  // told before votes can.
  bool watches = false;
};

// Empty: all is well. Else what went wrong.
std::string run(const Program& program, const RunOptions& options);

// The same for calls written out by hand: `body` is the program of one rank, without MPI_Finalize.
struct Rank {
  int world_rank;
  Scheduler& scheduler;
  UserMpi& mpi;
  ModelShim* shim;  // null without Accord
};
std::string run_ranks(int ranks, const RunOptions& options, const ShimOptions& shim_options,
                      const std::function<void(Rank&)>& body);

}  // namespace accord::model
