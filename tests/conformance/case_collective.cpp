// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

// Frees what the standard lets a program free while the operation is in progress.
void free_early(Run& run, bool wanted, bool user_op) {
  if (!wanted || !works(run, "types freed while in use")) return;
  run.types.free_all();
  if (user_op) run.free_operations();
}

int run_persistent(Run& run, const Prepared& prepared, bool large, bool early, int rounds) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = prepared.call(Form::persistent, large, &request);
  if (code != MPI_SUCCESS) return code;
  free_early(run, early, prepared.user_op);
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) {
      for (Buffer* buffer : prepared.buffers) {
        run.snapshot(*buffer);
        run.fill(*buffer, static_cast<std::uint64_t>(round));
      }
    }
    run.check(run.api().Start(&request), "Start");
    run.check(complete_persistent(run, request, run.local.fork()), "completion");
    run.log("persistent request is kept", request != MPI_REQUEST_NULL);
  }
  run.check(run.api().Request_free(&request), "Request_free");
  return MPI_SUCCESS;
}

}  // namespace

void case_collective(Run& run) {
  const bool neighbours = run.global.chance(15);
  const auto& comms = run.comms();
  const int which = run.global.pick(neighbours ? comms.topologies() : comms.plain());
  const Comm* comm = &comms.all()[static_cast<std::size_t>(which)];
  const bool fresh = run.global.chance(6) && !neighbours && comm->inter == false;
  const Kind kind = random_kind(run, *comm, neighbours);
  Form form = static_cast<Form>(run.global.below(3));
  bool large = run.global.chance(35);
  const int rounds = run.global.between(1, 3);
  if (!available(run, kind, form, large)) large = false;
  if (!available(run, kind, form, large)) form = Form::nonblocking;
  require_call(run, *comm, kind, form);

  Comm* own = fresh ? &run.fresh_comm(*comm) : nullptr;
  if (own != nullptr) comm = own;
  run.describe(std::string(form_name(form)) + (large ? " large-count" : ""));
  const Prepared prepared = prepare(run, *comm, {.kind = kind, .form = form});
  if (!comm->member) return;
  const bool early = run.local.chance(20) && form != Form::blocking;
  int code = MPI_SUCCESS;
  if (form == Form::persistent) {
    code = run_persistent(run, prepared, large, early, rounds);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    code = prepared.call(form, large, &request);
    if (form == Form::nonblocking && code == MPI_SUCCESS) {
      free_early(run, early, prepared.user_op);
      if (own != nullptr && works(run, "communicator freed while in use"))
        run.check(run.api().Comm_free(&own->handle), "Comm_free");
      code = complete_one(run, request, nullptr, run.local.fork());
      run.log("request is null", request == MPI_REQUEST_NULL);
    }
  }
  run.check(code, kind_name(kind));
}

}  // namespace accord::conformance
