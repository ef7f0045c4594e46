// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the bytes of a datatype lie, decoded from what it has been made of.
#pragma once

#include <mpi.h>

#include <optional>

#include "device/blocks.h"

namespace accord::shim {

// From the lower bound to the upper one, as the host MPI has them.
struct Extent {
  MPI_Count size = 0;
  MPI_Count lower_bound = 0;
  MPI_Count bytes = 0;
};
bool has_extent(MPI_Datatype datatype, Extent& extent);

// None where the host MPI does not tell, or tells of something unknown.
std::optional<device::Block> block_of(MPI_Datatype datatype, const Extent& extent);

}  // namespace accord::shim
