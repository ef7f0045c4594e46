// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Errors of ours in words that a user can act on, and their way to the error handlers of
// communicators, windows and files.
#pragma once

#include <mpi.h>

#include <string>

#include "base/status.h"
#include "core/call_site.h"

namespace accord::shim {

// MPI_Allreduce on MPI_COMM_WORLD of 4 ranks, rank 2: CAUSE; sendbuf 0x7f..: device memory of cuda
// device 0, 64 bytes into an allocation of 4096 bytes at 0x7f..
std::string words_of_error(const core::CallSite& site, MPI_Comm comm, const std::string& cause);

// Turns a Status into the return code of an MPI call on `comm`. An error of ours is raised through
// the communicator's error handler (the host MPI has raised its own already). Named is the call
// that this thread is in, or the one that made a request.
int raise(MPI_Comm comm, const Status& status);
int raise(MPI_Comm comm, const Status& status, const core::CallSite& site);
// An error of the host MPI's for which it has called no handler, or not that of `comm`.
void raise_code(MPI_Comm comm, int code);
// The same for calls on windows and files (in some ABIs all handles are one type, so these are no
// overloads).
int raise_on_window(MPI_Win window, const Status& status);
int raise_on_window(MPI_Win window, const Status& status, const core::CallSite& site);
int raise_on_file(MPI_File file, const Status& status);
int raise_on_file(MPI_File file, const Status& status, const core::CallSite& site);

// Error code of this ABI for a Status, with its text attached.
int error_code(const Status& status);
void forget_error_codes();

// Whether errors on `comm` go to a function of the user's. MPICH 5.0.2 returns MPI_SUCCESS after it
// has called one, so that a failed call cannot be told from one that went well.
bool has_error_function(MPI_Comm comm);

}  // namespace accord::shim
