// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which algorithm a call takes, decided in one place and from what is equal on all ranks alone:
// what ACCORD_ALGORITHM asks for, else the info of the communicator, else a table that was tuned on
// such a machine, else a rule of thresholds. `accord explain` asks the same functions. Knows no
// mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "coll/algorithm.h"
#include "coll/select/names.h"
#include "coll/select/table.h"
#include "device/adapter_reach.h"

namespace accord::coll {

const char* name_of(Origin origin);

// Where an algorithm may come from, in the order in which they count. Null: nothing from there.
struct Sources {
  const AlgorithmChoice* setting = nullptr;
  const AlgorithmChoice* info = nullptr;
  const Table* table = nullptr;
};

Asked asked_for(const Sources& sources, node::Kind kind, int ranks, std::size_t size_bytes);

// Whether the host MPI's call can be cut into chunks, on predefined types: where its result does
// not depend on it.
bool can_be_cut(node::Kind kind);

// Whether chunks of the host MPI's call are worth it, where it can be cut.
bool worth_chunks(std::size_t size_bytes, const Asked& asked);

// Before the vote: what the call may try. None: only the host MPI's own.
DeviceWays device_ways(const Question& question, const Asked& wish);

// After it: the first of the registry that takes the call.
const Algorithm& select(const Situation& situation) noexcept;

// What `question` comes to, by these two, where all ranks have device buffers, can join whatever
// there is, and share a node, or are on several.
struct Reach {
  bool one_node = true;
  bool packets = true;    // between all devices (device/packet_reach.h)
  bool in_turns = false;  // are ranks of one node at work on their device (device/kernel_place.h)
  device::AdapterReach adapters = device::AdapterReach::none;  // the worst of the nodes
};
Variant outcome(const Question& question, const Asked& asked, Reach reach = {});

// The same of messages from a device to a rank of its node: what is asked for, and what that comes
// to where both ends are device memory in one piece.
struct AskedMessage {
  MessageWay way = MessageWay::automatic;
  Origin origin = Origin::rule;
};
AskedMessage asked_for_message(const Sources& sources, std::size_t size_bytes);
MessageWay outcome(std::size_t size_bytes, const AskedMessage& asked);

// Of messages from a device to a rank of another node: what is asked for, ACCORD_NET_DESIGN
// included, and what that comes to.
struct AskedNetMessage {
  NetWay way;
  Origin origin = Origin::rule;
};
AskedNetMessage asked_for_net_message(const Sources& sources, std::size_t size_bytes);
// What besides the size decides; each sender's own business.
struct NetFacts {
  bool is_reached = true;                                      // UCX reads its memory itself
  device::AdapterReach adapters = device::AdapterReach::fast;  // of its node
  bool has_idle_core = true;                                   // its node, for a proxy
};
NetWay outcome(std::size_t size_bytes, const AskedNetMessage& asked, const NetFacts& facts);
// What goes between nodes in a collective that is not asked to go by a certain design: as
// ACCORD_NET_DESIGN says; automatic: by how long it is and how adapters reach device memory.
// `block_bytes`: of the longest block between two ranks, 0 where no rank knows it; then the end of
// those that go so, each for itself.
NetWay transport_by_setting();
NetWay transport_by_network(device::AdapterReach adapters, node::Kind kind,
                            std::size_t block_bytes);
std::size_t offers_end(device::AdapterReach adapters);
// The same without a proxy that spends a core, where somebody else would miss it.
NetWay without_core(const NetWay& way);
// Whether some message, or what goes between nodes in a collective, may have to go by a design.
bool may_go_by_design(const Sources& sources);

// The table that ACCORD_TABLE names, read once; empty where there is none or it cannot be used,
// which the text then says.
const Table& configured_table();
const std::string& table_problem();
// Once all ranks have turned out to have the same.
void use_table();

// The sources of this process; `info` of the communicator, or null.
Sources sources_with(const AlgorithmChoice* info);

}  // namespace accord::coll
