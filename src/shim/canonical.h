// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Numbers for predefined operations and types that are equal on all ranks (a handle's value need
// not be).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "device/reduction.h"

namespace accord::shim {

// 0 for a user-defined operation.
std::uint32_t canonical_op(MPI_Op op);

// The other way; null handles for other numbers.
MPI_Op op_of_number(std::uint32_t number);
MPI_Datatype type_of_number(std::uint32_t number);

// The number of a predefined type, by one of the same size where it is Fortran's of a given
// precision, whose handles differ from rank to rank; 0 where there is none.
std::uint32_t number_of_element(MPI_Datatype datatype);

// For people: sum.
const char* op_word(MPI_Op op);

// 0 for a derived type, and for one that no operation is defined on.
std::uint32_t canonical_type(MPI_Datatype datatype);

// Whether the standard defines the predefined operation on the type, and the host MPI does it;
// false also of some types of which nothing is known.
bool takes_operation(MPI_Datatype datatype, MPI_Op op);

// The same for reductions on a device, where an element of the type takes `size_bytes` without its
// gaps: none where kernels do not do it, or not as the host MPI does.
device::ReduceOp device_op(MPI_Op op);
device::Element device_element(device::ReduceOp op, MPI_Datatype datatype, std::size_t size_bytes);

// Whether MPI defines a predefined operation on a predefined type, as far as kernels know both.
bool may_be_defined(MPI_Op op, MPI_Datatype datatype, std::size_t size_bytes);

}  // namespace accord::shim
