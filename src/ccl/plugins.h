// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The plug-ins built into Accord: one function for each ABI, which gives the plug-in of one line of
// plugins.def. Called by library.cpp only.
#pragma once

#include <accord/ccl.h>

#include <span>
#include <string_view>

namespace accord::ccl {

// A line of plugins.def.
struct BuiltIn {
  const char* name;
  const char* runtime;
  int version_min;  // as the library counts
  std::span<const char* const> files;
};

// Says why in `error`; for functions of a plug-in to return.
int fail(accord_ccl_error& error, std::string_view text) noexcept;

// NCCL's ABI, and the two that are like it but for names and numbers. `open` takes paths only: the
// files of the line are tried by the caller.
accord_ccl_plugin nccl_plugin(const BuiltIn& line);
accord_ccl_plugin hccl_plugin(const BuiltIn& line);
accord_ccl_plugin oneccl_plugin(const BuiltIn& line);

}  // namespace accord::ccl
