// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The communicator of this process alone (shim.h) through the life of the process: it is there from
// the first MPI_Init or MPI_Session_init to the last MPI_Finalize or MPI_Session_finalize, in
// whichever order the program makes them.
#pragma once

#include <mpi.h>

#include "shim/shim.h"

namespace accord::shim {

// Not thread-safe, but for get().
class PrivateComm {
 public:
  MPI_Comm get() const noexcept { return comm_; }
#ifdef ACCORD_HAS_Session_init
  bool is_of_session() const noexcept { return session_ != MPI_SESSION_NULL; }
#else
  bool is_of_session() const noexcept { return false; }
#endif
  // After MPI_Init, and before MPI_Finalize.
  void open_world();
  // True where nothing of MPI is left: no session of the program's either.
  bool close_world();
#ifdef ACCORD_HAS_Session_init
  // After MPI_Session_init, and before MPI_Session_finalize; close_session() answers as
  // close_world() does.
  void open_session();
  bool close_session();
#endif

 private:
  bool close_if_last();

  MPI_Comm comm_ = MPI_COMM_NULL;
  bool world_ = false;
#ifdef ACCORD_HAS_Session_init
  void make_in_session();

  int sessions_ = 0;  // the program's
  // Ours, where the communicator was made in it: one of the program's may end before the others.
  MPI_Session session_ = MPI_SESSION_NULL;
#endif
};

}  // namespace accord::shim
