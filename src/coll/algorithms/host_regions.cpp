// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls within a node through host memory that its ranks share (node_exchange.h). Where ranks take
// turns on a device this is the way that waits for no turn: engines copy, the CPU reduces.
#include "coll/algorithm.h"
#include "coll/coll_args.h"
#include "coll/intra/node_exchange.h"
#include "core/team.h"

namespace accord::coll {
namespace {

using ByHost = DeviceWays::ByHost;

constexpr NamedVariant kVariants[] = {{"node-host", {.algorithm = &algorithms::host_regions}}};

bool offer(const Question&, const Asked& asked, DeviceWays& ways) {
  if (asked.is(algorithms::host_regions)) {
    ways.by_host_regions = ByHost::always;
  } else if (!ways.in_turns) {
    ways.by_host_regions = ByHost::in_turns;
  }
  return ways.by_host_regions != ByHost::never;
}

std::unique_ptr<Exchange> make(core::Team& team, const CollArgs& call, Company) {
  return std::make_unique<NodeExchange>(team.regions.group, team.regions.group->host_regions(),
                                        call);
}

}  // namespace

constinit const Algorithm algorithms::host_regions{
    .name = "node-host",
    .variants = kVariants,
    .has = [](node::Kind kind) { return !node::goes_by_pairs(kind); },
    .by_regions = true,
    .offer = offer,
    .takes = [](const Situation& s) { return s.host_regions; },
    .make = make,
    .what =
        "Moves chunks through page-locked host memory that the ranks of a node share. Copy engines "
        "bring them there and back; the CPU reduces, each rank a share.",
    .steps = "for each chunk: copy in, [reduce a share], copy out",
    .bytes = "what the collective has to move, to the host and from there",
    .where =
        "within a node where ranks take turns on a device, below ACCORD_TURN_BYTES; elsewhere if "
        "asked for"};

}  // namespace accord::coll
