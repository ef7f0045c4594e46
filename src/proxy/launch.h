// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The start of the proxy's process out of an MPI process, which must not notice: no signal comes
// of it, no child is left to wait for, no thread of it holds a lock that the new process would
// want, and nothing that a launcher waits for (its pipes) stays open in the new one.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace accord::proxy {

// The socket at which the proxy finds the ranks that have connected already.
constexpr int kListener = 3;

// This process's environment (NAME=value) as a proxy is to have it, which is no MPI program and
// serves the devices of all ranks. To be called where the program does not change it meanwhile.
std::vector<std::string> environment_of_proxy();

// `program` is given `listener` as its descriptor kListener, in a process group of its own,
// `environment`, and the name of this node.
Status launch(const std::string& program, const std::string& node,
              const std::vector<std::string>& environment, int listener);

// accord_proxy beside the library that this function is part of.
std::string program_beside_library();

}  // namespace accord::proxy
