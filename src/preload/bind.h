// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Binding: at the first MPI call of a process, finds its MPI library, opens the shim for that
// library's binary interface and points every trampoline at the shim, at a PMPI tool or at the host
// MPI. What came of it is reported here for accord_info_json. The binding itself is asked for by
// trampolines only.
#pragma once

#include <string>
#include <string_view>

namespace accord::preload {

// What this process is bound to. Empty strings: not bound (yet).
struct Binding {
  std::string host_path;  // the MPI library
  std::string abi;        // "mpich", "openmpi" or "abi"
  std::string shim_path;  // "" where every call goes to the host MPI untouched ...
  std::string reason;     // ... and this says why
};

// A copy, since another thread may be binding. Thread-safe; makes no MPI call and binds nothing.
Binding binding();

// The directory of libaccord.so, where its shims and modules are. Empty when it cannot be told.
const std::string& library_directory();

// Whether a function is Accord's own: libaccord has it whatever the MPI has.
bool is_provided_by_accord(std::string_view name) noexcept;

}  // namespace accord::preload
