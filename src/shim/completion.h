// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What an MPI status says about a finished request.
#pragma once

#include <mpi.h>

#include "shim/shim.h"

namespace accord::shim {

inline core::Completion completion_of(const MPI_Status& status) {
  core::Completion completion;
  int cancelled = 0;
  MPI_Count received_bytes = 0;
  (void)host::Test_cancelled(&status, &cancelled);
  completion.cancelled = cancelled != 0;
  // Every MPI keeps the byte count, whatever type the receive had.
  if (host::Get_elements_x(&status, MPI_BYTE, &received_bytes) == MPI_SUCCESS &&
      received_bytes >= 0) {
    completion.received_bytes = static_cast<std::size_t>(received_bytes);
  }
  return completion;
}

}  // namespace accord::shim
