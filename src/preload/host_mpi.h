// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Finds the MPI library that this process uses and tells which of the three binary interfaces it
// has. Goes by the symbols a library itself defines, not by its file name, so that vendors' builds
// (Cray, Intel, MVAPICH, HPC-X) are recognised. Opens nothing, calls no MPI. Used by bind and
// visibility.
#pragma once

#include <string_view>
#include <vector>

#include "preload/elf_objects.h"

namespace accord::preload {

enum class Abi { mpich, openmpi, standard };

// As in the file name of the shim: "mpich", "openmpi" or "abi".
const char* abi_name(Abi abi) noexcept;

// The value of MPI_ERR_OTHER in that interface.
int abi_error_other(Abi abi) noexcept;

// Whether an object is an MPI library: it defines PMPI_Init, which a PMPI tool only calls, and is
// not libaccord.
bool is_host_mpi(const ElfObject& object) noexcept;

// The interface of a library for which is_host_mpi holds. `dependencies` are all objects of the
// process.
Abi abi_of(const ElfObject& host, const std::vector<ElfObject>& objects);

struct HostMpiChoice {
  ElfObject library;
  std::vector<ElfObject> others;  // MPI libraries that are loaded, too, and not chosen
};

// Chooses the MPI library of this process: of several, the one that the object around `caller` was
// linked with, else the first loaded. False when there is none.
bool choose_host_mpi(const std::vector<ElfObject>& objects, const void* caller,
                     HostMpiChoice& choice);

}  // namespace accord::preload
