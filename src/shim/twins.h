// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Blocking calls that run as their non-blocking twins while operations of ours are active. What the
// host MPI has to refuse never does: it would name a call that the program has not made.
#pragma once

#include <mpi.h>

#include "shim/posted_receives.h"
#include "shim/shim.h"

namespace accord::shim {

// Whether a message can be between these; else the host MPI shall say so, as of the call that the
// program has made and not of a twin.
enum class Direction { send, receive };
inline bool is_envelope(MPI_Comm comm, int peer, int tag, Direction direction) {
  const CommState* const state = comm_state(comm);
  if (state == nullptr) return false;
  const bool any = direction == Direction::receive;
  const bool is_rank = (peer >= 0 && peer < state->remote_size) || peer == MPI_PROC_NULL ||
                       (any && peer == MPI_ANY_SOURCE);
  return is_rank && (tag >= 0 || (any && tag == MPI_ANY_TAG));
}

// Runs a non-blocking host call to its end while our own operations go on.
template <class Twin>
int run_twin(Twin twin, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = twin(&request);
  if (code != MPI_SUCCESS) return code;
  int done = 0;
  engine().wait_until([&] {
    code = host::Test(&request, &done, status);
    return done != 0 || code != MPI_SUCCESS;
  });
  return code;
}

// `native` blocks, `twin` does not; either may be called, on the pointers given to it.
template <class Native, class Twin>
int run_blocking(Native native, Twin twin, MPI_Status* status) {
  if (engine().idle() && !has_posted_receives()) {
    const Region region(engine());
    return native();
  }
  return run_twin(twin, status);
}

}  // namespace accord::shim
