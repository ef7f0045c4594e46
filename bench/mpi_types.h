// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI names of element types and reductions, for the MPI this file is compiled against.
#pragma once

#include <mpi.h>

#include <string_view>

#include "bench/element.h"

namespace accord::bench {

// MPI_DATATYPE_NULL where this MPI has no such type.
MPI_Datatype mpi_type_of(std::string_view element_name);

MPI_Op mpi_op_of(ReduceOp op);

}  // namespace accord::bench
