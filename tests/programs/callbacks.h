// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Functions of the program that MPI calls, and that make MPI calls themselves: operations, copy and
// delete functions of attributes, an error handler, and those of generalised requests.
#pragma once

#include <mpi.h>

#include "calls.h"

namespace accord::programs {

void set_up_callbacks();
void end_callbacks();
// Between programs: every attribute of a communicator has been deleted but that of MPI_COMM_WORLD.
void check_attributes();

// The operation of the program that does `op`; for what commutes also one that is said not to.
MPI_Op user_operation(model::Op op, bool commutes);
// The same, of the caller's own.
MPI_Op make_user_operation(model::Op op, bool commutes);

// An attribute whose copy and delete functions make MPI calls, those of a communicator a message in
// device memory.
void set_attribute_of_comm(MPI_Comm comm);
void set_attribute_of_type(MPI_Datatype type);
bool has_attribute(MPI_Comm comm);

// A mistake on a communicator of this process alone, of which its error handler is told.
void provoke_error();

// A request of the program's own. It ends when complete_own() is told so, or, with threads, by
// itself after a while.
MPI_Request start_own(bool by_itself);
void complete_own(MPI_Request request);
// What its status must tell.
void check_own(const MPI_Status& status);

}  // namespace accord::programs
