// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Requests may outlive the communicator they were made on. Their errors then go to the error
// handler that it had when it was freed, through a communicator of this process alone that has the
// same one.
#pragma once

#include <mpi.h>

namespace accord::shim {

// While `comm` is freed, its handle still being valid.
void inherit_requests(MPI_Comm comm);
// Before MPI_COMM_SELF goes.
void free_heirs();

}  // namespace accord::shim
