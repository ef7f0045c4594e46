// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What long puts and gets of a window go by between nodes: the design of a message of that size.
#pragma once

#include <mpi.h>

#include <memory>

#include "rma/transports.h"

namespace accord::shim {

// Null: there is no network of ours, or no rank of `comm` on another node.
std::unique_ptr<rma::Transports> window_transports(MPI_Comm comm);

}  // namespace accord::shim
