// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Datatypes and operations that the program frees while a call of ours that names them has yet to
// be given to the host MPI: MPI lets it, since the call has been made. The host MPI frees them once
// nothing is under way, and no request is left that names operations for all its rounds.
#pragma once

#include <mpi.h>

namespace accord::shim {

int Type_free(MPI_Datatype* datatype) noexcept;
int Op_free(MPI_Op* op) noexcept;

// Frees what was kept, if nothing is under way. Costs a load where nothing is kept.
void free_kept_handles() noexcept;

// While there is one, nothing is freed: for requests that name handles and may be inactive.
class HandleUse {
 public:
  HandleUse() noexcept;
  ~HandleUse();
  HandleUse(const HandleUse&) = delete;
  HandleUse& operator=(const HandleUse&) = delete;
};

}  // namespace accord::shim
