// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Numbers for predefined operations and types that are equal on all ranks (a handle's value need
// not be).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "device/reduction.h"

namespace accord::shim {

// 0 for a user-defined operation.
std::uint32_t canonical_op(MPI_Op op) noexcept;

// For people: sum.
const char* op_word(MPI_Op op) noexcept;

// 0 for a type that is not one of the C types of MPI 4.1, table 3.2.
std::uint32_t canonical_type(MPI_Datatype datatype) noexcept;

// The same for reductions on a device: none where kernels do not do it, or not as the host MPI does
// (Open MPI adds 8-bit integers with saturation).
device::ReduceOp device_op(MPI_Op op) noexcept;
device::Element device_element(device::ReduceOp op, MPI_Datatype datatype) noexcept;

}  // namespace accord::shim
