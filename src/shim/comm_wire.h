// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The wire of a communicator over the host MPI: a duplicate of it that is Accord's alone, made by
// the first call that goes in two levels, or by a library across nodes, and freed with the
// communicator.
#pragma once

#include <mpi.h>

#include <memory>

#include "core/wire.h"

namespace accord::shim {

// As core::IssueWire.
Status issue_wire(MPI_Comm comm, std::shared_ptr<core::Wire>& wire, core::HostRequest& request);

}  // namespace accord::shim
