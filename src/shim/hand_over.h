// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a request that stands for buffers of ours gets to the user.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>

#include "shim/check.h"
#include "shim/shim.h"

namespace accord::shim {

// What the handle of a non-blocking or persistent call is.
enum class Handle {
  send,     // may be one handle that the MPI gives out for every request complete at birth (MPICH
            // does)
  receive,  // its own
  nothing,  // of a message to or from MPI_PROC_NULL: shared too, and there is nothing to finish
  persistent,
};

inline check::Lifetime lifetime_of(Handle handle) {
  return handle == Handle::persistent ? check::Lifetime::persistent : check::Lifetime::call;
}

// Hands a request that stands for staged buffers to the user. Only a send is asked whether it is
// complete: asking a receive could raise its error before the user waits for it.
inline int hand_over(Handle handle, MPI_Request request, std::shared_ptr<core::Tracked> work) {
  if (handle == Handle::nothing) return MPI_SUCCESS;
  if (handle == Handle::send) {
    int done = 0;
    const int code = host::Request_get_status(request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || done != 0) return code;
  }
  if (handle == Handle::persistent) {
    work->persistent = true;
    work->active = false;
  }
  requests().track(to_bits(request), std::move(work));
  return MPI_SUCCESS;
}

}  // namespace accord::shim
