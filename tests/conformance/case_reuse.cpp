// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One collective again and again on the same buffers, each an allocation of its own that is freed
// at the end of the case: what a library remembers of a buffer serves the later calls, and must not
// outlive it, since the next case gets the same addresses.
#include "cases.h"
#include "collectives.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kRoundsMax = 7;

int call_once(Run& run, const Prepared& prepared, Form form) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = prepared.call(form, false, &request);
  if (form == Form::blocking || code != MPI_SUCCESS) return code;
  return complete_one(run, request, nullptr, run.local.fork());
}

}  // namespace

void case_reuse(Run& run) {
  static constexpr Kind kKinds[] = {
      Kind::bcast,    Kind::gather,   Kind::scatter,   Kind::allgather,
      Kind::alltoall, Kind::reduce,   Kind::allreduce, Kind::reduce_scatter_block,
      Kind::gatherv,  Kind::scatterv, Kind::alltoallv, Kind::alltoallw};
  const Kind kind = kKinds[run.global.below(static_cast<int>(std::size(kKinds)))];
  // Mostly the world: a communicator that sees buffers come and go.
  const bool world = run.global.chance(70);
  const int which = run.global.pick(run.comms().intra());
  const Comm& comm =
      world ? run.comms().world() : run.comms().all()[static_cast<std::size_t>(which)];
  const Form form = run.global.chance(70) ? Form::blocking : Form::nonblocking;
  const int rounds = run.global.between(2, kRoundsMax);
  require_call(run, comm, kind, form);
  run.allocate_each();
  run.describe(std::to_string(rounds) + " times " + form_name(form));
  const Prepared prepared = prepare(run, comm, {.kind = kind, .form = form});
  if (!comm.member) return;
  for (int round = 0; round < rounds; ++round) {
    for (Buffer* buffer : prepared.buffers) {
      if (round == 0) continue;
      run.snapshot(*buffer);
      run.fill(*buffer, static_cast<std::uint64_t>(round));
    }
    run.check(call_once(run, prepared, form), kind_name(kind));
  }
}

}  // namespace accord::conformance
