// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The requests of a case of partitioned communication: which messages and collectives there are,
// drawn the same on all ranks, and this rank's ends of them. case_partitioned.cpp carries them out.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "collectives.h"
#include "partitioned.h"
#include "run.h"

namespace accord::conformance {

// One end as this rank has it, and the ordinary calls that do the same.
struct PartitionedWork {
  PartitionedEnd end;
  std::string key;            // those of one key are made in one order on all ranks
  std::function<int()> post;  // of a message: Isend or Irecv, into ordinary
  std::function<int()> call;  // of a collective
  MPI_Request ordinary = MPI_REQUEST_NULL;

  PartitionedWork(Run& run, const PartitionedSettings& settings, std::string name)
      : end(run, settings, std::move(name)) {}
  bool is_receive() const { return end.settings().end == PartitionedSettings::End::receive; }
  bool is_truncated_receive() const { return is_receive() && end.settings().truncated; }
};

struct PartitionedProgram {
  std::deque<PartitionedWork> works;
  int lives = 1;             // the requests are made and freed so often
  int rounds = 1;            // of each
  bool freed_early = false;  // types and operations, once the requests are made
  Comm* fresh = nullptr;     // freed as early
  // An ordinary collective and a message to the next rank meanwhile; empty calls where there is
  // none.
  Prepared collective;
  Prepared send;
  Prepared receive;
};

// Throws Skip where the host MPI knows no partitioned requests or Accord is not there.
void draw_partitioned(Run& run, PartitionedProgram& program);

}  // namespace accord::conformance
