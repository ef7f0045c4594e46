// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The info key "accord_algorithm" of a communicator: what ACCORD_ALGORITHM says for all, said for
// one. Given with MPI_Comm_dup_with_info or MPI_Comm_set_info, the same by all ranks; MPI_Comm_dup
// hands it on.
#pragma once

#include <mpi.h>

#include <memory>

#include "coll/select/names.h"

namespace accord::shim {

int Comm_set_info(MPI_Comm comm, MPI_Info info);
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm);

// What `comm` got with its duplication, or null.
std::shared_ptr<const coll::AlgorithmChoice> inherited_algorithms(MPI_Comm comm);

// With the runtime.
void make_info_keyval();
void free_info_keyval();

}  // namespace accord::shim
