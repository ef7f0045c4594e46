// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Who the ranks of a communicator are in MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

#include <vector>

namespace accord::shim {

enum class Side { local, remote };  // remote: the other group of an intercommunicator

// By rank of `comm`, which has `size` on that side: its rank in MPI_COMM_WORLD, or MPI_UNDEFINED
// where it is not in there. All are undefined where the host MPI has no MPI_COMM_WORLD (sessions)
// or does not say. Thread-safe.
std::vector<int> ranks_in_world(MPI_Comm comm, int size, Side side = Side::local);

}  // namespace accord::shim
