// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the inter-node step of a call goes by: the wire alone, or a transport (transport.h). Which
// of the two follows from what is equal on all ranks. By which design it sends is each rank's own
// business: one whose node has no core for an active proxy does without.
#pragma once

#include <memory>

#include "coll/coll_args.h"
#include "core/placement.h"

namespace accord::coll {

// Never automatic.
NetWay between_nodes(const CollArgs& args, const core::Placement& placement);
// Null: the wire alone.
std::unique_ptr<Transport> make_transport(const NetWay& between, const CollArgs& args,
                                          core::Wire& wire);
// What traces call a call in two levels.
const char* path_of(bool by_pairs, const NetWay& between) noexcept;

}  // namespace accord::coll
