// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows on any memory, which differs from rank to rank. What works on host memory must work on a
// device; where Accord has no progress thread, a window may be an MPI error on every rank instead,
// through the communicator's error handler. tests/mpi has random one-sided programs.
#include <cstdlib>

#include "cases.h"
#include "exclusions.h"

namespace accord::conformance {
namespace {

constexpr std::int64_t kWindowBytes = 4096;

// A window of device memory that some rank cannot reach itself needs the thread. Accord has it
// where it is asked for, and where the machine has an accelerator: drivers of tests, whose runtime
// is named, make it none.
bool lacks_thread() {
  const char* const thread = std::getenv("ACCORD_PROGRESS_THREAD");
  const char* const runtime = std::getenv("ACCORD_RUNTIME");
  if (thread != nullptr) return std::string(thread) == "off";
  return runtime != nullptr && std::string(runtime) != "host";
}

// Whether it is so of some rank.
bool any_rank(Run& run, bool mine) {
  int in = mine ? 1 : 0;
  int out = 0;
  run.oracle_api().Allreduce.blocking.small(&in, &out, 1, MPI_INT, MPI_MAX, run.oracle_world());
  return out != 0;
}

void put_and_get(Run& run, const Comm& comm, MPI_Win win) {
  const Api& api = run.api();
  std::vector<int> out(8, comm.rank * 100 + 7);
  std::vector<int> in(8, -1);
  const int target = (comm.rank + 1) % comm.size;
  run.check(api.Win_fence(0, win), "Win_fence");
  run.check(api.Put(out.data(), 8, MPI_INT, target, 0, 8, MPI_INT, win), "Put");
  run.check(api.Win_fence(0, win), "Win_fence");
  run.check(api.Get(in.data(), 8, MPI_INT, target, 0, 8, MPI_INT, win), "Get");
  run.check(api.Win_fence(0, win), "Win_fence");
  for (int value : in)
    if (value != comm.rank * 100 + 7) run.fail("a window on host memory lost a Put");
}

void created(Run& run, const Comm& comm) {
  Buffer& base = run.buffer("window", Span{0, kWindowBytes}, 16);
  const bool device = any_rank(run, base.kind != ACCORD_MEMORY_HOST);
  const bool may_be_refused = any_rank(run, lacks_thread());
  run.set_loose(base, 0, kWindowBytes);
  MPI_Win win = MPI_WIN_NULL;
  const int code =
      run.api().Win_create(base.pointer(), kWindowBytes, 1, MPI_INFO_NULL, comm.handle, &win);
  if (device && code != MPI_SUCCESS && may_be_refused) return;
  if (!run.check(code, "Win_create")) return;
  put_and_get(run, comm, win);
  run.check(run.api().Win_free(&win), "Win_free");
}

void attached(Run& run, const Comm& comm) {
  Buffer& base = run.buffer("window", Span{0, kWindowBytes}, 16);
  const bool may_be_refused = any_rank(run, lacks_thread());
  run.set_loose(base, 0, kWindowBytes);
  MPI_Win win = MPI_WIN_NULL;
  if (!run.check(run.api().Win_create_dynamic(MPI_INFO_NULL, comm.handle, &win),
                 "Win_create_dynamic"))
    return;
  run.check(run.api().Win_set_errhandler(win, MPI_ERRORS_RETURN), "Win_set_errhandler");
  const int code = run.api().Win_attach(win, base.pointer(), kWindowBytes);
  const bool refused = base.kind != ACCORD_MEMORY_HOST && code != MPI_SUCCESS && may_be_refused;
  if (!refused && run.check(code, "Win_attach"))
    run.check(run.api().Win_detach(win, base.pointer()), "Win_detach");
  run.check(run.api().Win_free(&win), "Win_free");
}

}  // namespace

void case_window(Run& run) {
  require(run, "windows");
  const bool dynamic = run.global.chance(40);
  run.describe(dynamic ? "dynamic window" : "window");
  const Comm& comm = run.comms().world();
  if (dynamic)
    attached(run, comm);
  else
    created(run, comm);
}

}  // namespace accord::conformance
