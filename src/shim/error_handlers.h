// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Error handlers of the program on communicators, which may throw (thrown.h).
#pragma once

#include <mpi.h>

namespace accord::shim {

int Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler);

}  // namespace accord::shim
