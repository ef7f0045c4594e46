// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Datatypes and operations that the program frees while a call of ours that names them has yet to
// be given to the host MPI: MPI lets it, since the call has been made. The host MPI frees them once
// nothing is under way, and no request is left that names operations for all its rounds.
#pragma once

#include <mpi.h>

namespace accord::shim {

int Type_free(MPI_Datatype* datatype);
int Op_free(MPI_Op* op);

// Frees what was kept, if nothing is under way. Costs a load where nothing is kept.
void free_kept_handles();

// While there is one, nothing is freed: for requests that name handles and may be inactive.
class HandleUse {
 public:
  HandleUse();
  ~HandleUse();
  HandleUse(const HandleUse&) = delete;
  HandleUse& operator=(const HandleUse&) = delete;
};

// A datatype that lives on in the host MPI as long as this does, though the program frees it
// meanwhile. No copy of it: making one would call the program's attribute functions.
class KeptType {
 public:
  explicit KeptType(MPI_Datatype datatype);
  ~KeptType();
  KeptType(const KeptType&) = delete;
  KeptType& operator=(const KeptType&) = delete;

  MPI_Datatype handle() const noexcept { return handle_; }

 private:
  MPI_Datatype handle_;
};

}  // namespace accord::shim
