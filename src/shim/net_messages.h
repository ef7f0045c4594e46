// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from a device to ranks of other nodes that go by a design of ours (net/design.h) instead
// of through host memory by the host MPI. All ranks of the job agree at MPI_Init whether there are
// any: where one has no network of ours, none has.
#pragma once

#include <mpi.h>

#include "p2p/net_messages.h"
#include "shim/messaging.h"
#include "shim/shim.h"

namespace accord::shim {

// Together with all ranks of MPI_COMM_WORLD. `node`: the same number on all ranks of a node alone.
void join_net_messages(int node);
void leave_net_messages();

// Only where messaging.net_joined.
p2p::NetMessages& net_messages();
net::Mail& net_mail();
// For the proxy of this node, as far as is known now.
bool has_idle_core();

// The rank in MPI_COMM_WORLD of a rank of `comm` (of the remote group: none) on another node, or
// -1.
int net_rank(MPI_Comm comm, int rank);

}  // namespace accord::shim
