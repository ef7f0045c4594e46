// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The wires of communicators over the host MPI. All go over one duplicate of MPI_COMM_WORLD, made
// in MPI_Init: to make a communicator in another call may wait for a rank that waits in a call of
// its own. Each rank chooses the tags by which it receives, and tells them to the other ranks.
#pragma once

#include <mpi.h>

#include <memory>

#include "core/placement.h"
#include "core/wire.h"

namespace accord::shim {

// Collective, on all ranks of MPI_COMM_WORLD: in MPI_Init and MPI_Finalize. Not thread-safe. All
// ranks learn which of them share a node.
void open_wires();
void close_wires();

// Whether this job opened them. The same on all ranks.
bool has_wires();

// As core::IssueWire; all ranks of `comm`, which has `size`, are in MPI_COMM_WORLD. Where some rank
// has no tags left, opened() says so on all.
Status issue_wire(MPI_Comm comm, int size, std::shared_ptr<core::Wire>& wire,
                  core::HostRequest& request);

// Which ranks of such a communicator share a node.
core::Placement placement_of(MPI_Comm comm, int size);

}  // namespace accord::shim
