// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The typemap of any MPI datatype, decoded from what it has been made of (type_contents.h): in time
// and memory that follow from the arguments of its constructors, never from what it spans. Kept as
// an attribute of the datatype.
#pragma once

#include <mpi.h>

#include <memory>

#include "core/layout.h"

namespace accord::shim {

// Null when the datatype is not valid or not committed: the host MPI will say so when it gets the
// call.
std::shared_ptr<const core::Typemap> typemap(MPI_Datatype datatype);

// The same where it costs nothing, since the datatype is predefined or has been asked about before;
// else null.
std::shared_ptr<const core::Typemap> known_typemap(MPI_Datatype datatype);

// Whether the datatype is predefined: its handle is never reused.
bool is_named(MPI_Datatype datatype);

// Of the attribute; a program may end MPI and begin it anew in another session.
void make_type_keyval();
void free_type_keyval();

}  // namespace accord::shim
