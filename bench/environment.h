// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Settings that the libraries of the peers read from the environment: which are set, for the
// records, and those that peers need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace accord::bench {

// "NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0": those that begin with `prefix` and are not empty, by name.
std::string settings_in_environment(std::string_view prefix);

// The best that NCCL does with memory which is no window has to be asked for, and it is read once
// in a process. So the peers that want it and those that do not exclude each other; says why.
std::string nccl_conflict(const std::vector<std::string>& peers);
// What the peers need, in the environment: before any library of theirs is initialised.
void set_nccl_environment(const std::vector<std::string>& peers);

}  // namespace accord::bench
