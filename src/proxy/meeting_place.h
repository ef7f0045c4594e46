// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the ranks of a node and their proxy meet: a name in the abstract namespace of Unix sockets,
// which goes with the last process that has its socket, and of which every network namespace has
// its own. Two ranks that take it at once: the kernel gives it to one.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "node/descriptor.h"

namespace accord::proxy {

// `is_there` says no where nobody has taken the place.
Status connect_to_place(std::uint64_t cookie, std::uint64_t node, node::Descriptor& socket,
                        bool& is_there);

// `place` stays closed where somebody else has taken it meanwhile.
Status take_place(std::uint64_t cookie, std::uint64_t node, node::Descriptor& place);

}  // namespace accord::proxy
