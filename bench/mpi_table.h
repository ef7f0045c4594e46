// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI functions as tables of pointers, so that the same code can call them in two ways: as the
// program would (whatever intercepts them comes first), and in the MPI library itself, past
// everything preloaded.
#pragma once

#include <mpi.h>

#include <string>

namespace accord::bench {

// The three forms of one collective, their types derived from the blocking one's. A form that the
// MPI does not have is null.
template <class Function>
struct CollectiveForms;
template <class... Args>
struct CollectiveForms<int(Args...)> {
  int (*blocking)(Args...) = nullptr;
  int (*nonblocking)(Args..., MPI_Request*) = nullptr;
  int (*persistent)(Args..., MPI_Info, MPI_Request*) = nullptr;
};

struct MpiTable {
#define COLLECTIVE(name) CollectiveForms<decltype(MPI_##name)> name;
#define FUNCTION(name) decltype(&MPI_##name) name = nullptr;
#include "bench/mpi_functions.def"
#undef COLLECTIVE
#undef FUNCTION
};

// What a call in this program's source would reach.
MpiTable program_mpi();

// The MPI library in this process.
struct HostMpi {
  MpiTable table;
  std::string path;
  bool cuda_support = false;  // what its own MPIX_Query_cuda_support says
};

// False with the reason in `why_not` when the library cannot be told. After MPI_Init.
bool find_host_mpi(HostMpi& host, std::string& why_not);

}  // namespace accord::bench
