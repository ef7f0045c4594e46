// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which MPI a process runs on, and what that is known to do wrong.
#pragma once

#include <string>

namespace accord::conformance {

// Which MPI this is: cases and exclusions may depend on it, never on the side.
struct Flavour {
  enum class Vendor { mpich, open_mpi } vendor = Vendor::mpich;
  int major = 0;
  int minor = 0;
  int patch = 0;
  std::string text;
};
// Of what MPI_Get_library_version tells: "MPICH Version: 4.0.2 ...", "Open MPI v5.0.11, ...".
Flavour read_flavour(const char* library_version);

// What is wrong with `feature` in this MPI; null: nothing known.
const char* known_defect(const Flavour& flavour, const char* feature);

}  // namespace accord::conformance
