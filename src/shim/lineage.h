// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A number for each communicator, the same on all its ranks and different for any two that a pair
// of ranks has in common, without a message: it follows from the parent's number and how many
// communicators the parent's ranks have made of it before, since all of them make these in the same
// order. Kept only where Accord carries partitioned requests, which are matched by it, or the ranks
// of a node look which calls the others make. An attribute, so that the host MPI names duplicates,
// whichever call makes them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace accord::shim {

// 0: none, as of communicators with processes of another MPI_COMM_WORLD.
std::uint64_t lineage_of(MPI_Comm comm);
// 0, too, where the ranks may have counted duplicates in different orders.
std::uint64_t sure_lineage_of(MPI_Comm comm);

// After a call of all ranks of `parent` that has made `child`, which may be MPI_COMM_NULL here.
void descend(MPI_Comm parent, MPI_Comm child);
// After one of the ranks of `child` alone, which `tag` tells from others of theirs.
void descend_by_members(MPI_Comm parent, std::uint64_t tag, MPI_Comm child);

// Before MPI_Comm_idup, which names its duplicate whenever it completes.
void begin_idup(MPI_Comm parent);

void start_lineages();
void stop_lineages();

}  // namespace accord::shim
