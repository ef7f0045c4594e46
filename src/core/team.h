// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the ranks of a communicator share: who is on which node, device memory that they have open,
// a wire between nodes, communicators of collective libraries. Each is made on first need, by all
// ranks in the same call (coll/run/bootstrap.h); what is made or declined is equal on all ranks.
// Knows no algorithm and no mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/placement.h"
#include "node/device_pool.h"

namespace accord::node {
class Group;
}

namespace accord::coll {
class CclGroup;
}

namespace accord::core {

class Wire;

// A group of the ranks of a node that have device memory of each other open.
struct NodeGroup {
  std::shared_ptr<node::Group> group;  // once they have joined it
  bool declined = false;               // they tried, and cannot
  unsigned early_attempts = 0;         // when some of them used no device yet
  std::size_t asked_bytes = 0;         // of its regions or lanes: more is worth joining anew
  std::string why_declined;            // as far as this rank knows, for people
  Placement placement;                 // of the ranks that tried
  bool reduce = false;                 // all of them can on their device
};

// What calls of a communicator that spans nodes go by.
struct Nodes {
  NodeGroup local;             // a group on each of them, or on none
  std::shared_ptr<Wire> wire;  // between the nodes
  std::uint64_t chunks = 0;    // that calls have been cut into so far
  // Which messages of the wire are theirs: 0 is the communicator's, each of its persistent requests
  // has another.
  unsigned lane = 0;
  unsigned lanes_given = 0;
  // Device memory that chunks of earlier calls lay in between the nodes: the network knows it.
  std::vector<node::DeviceLease> parcels = {};
};

// One per communicator, and one per persistent request. The thread whose call it is alone may
// change it.
struct Team {
  NodeGroup regions;  // for long calls
  NodeGroup inboxes;  // for short ones
  Nodes nodes;
  std::vector<std::shared_ptr<coll::CclGroup>>
      libraries;  // one a library that calls have asked for
};

}  // namespace accord::core
