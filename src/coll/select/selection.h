// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which way a collective takes, decided in one place and from what is equal on all ranks alone:
// what ACCORD_ALGORITHM asks for, else the info of the communicator, else a table that was tuned on
// such a machine, else a rule of thresholds. `accord explain` asks the same functions. Knows no
// mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "coll/select/algorithm.h"
#include "coll/select/table.h"

namespace accord::core {

// Who has chosen an algorithm; rule: nobody has asked for one.
enum class Origin { setting, info, table, rule };
const char* name_of(Origin origin);

struct Asked {
  Algorithm algorithm;
  Origin origin = Origin::rule;

  bool for_host() const noexcept {
    return algorithm.way == Algorithm::Way::staged || algorithm.way == Algorithm::Way::pipelined;
  }
};

// Where an algorithm may come from, in the order in which they count. Null: nothing from there.
struct Sources {
  const AlgorithmChoice* setting = nullptr;
  const AlgorithmChoice* info = nullptr;
  const Table* table = nullptr;
};

// What of a call decides.
struct Question {
  node::Kind kind = node::Kind::bcast;
  int ranks = 1;
  std::size_t size_bytes = 0;     // of the block between two ranks; the mean where blocks differ
  std::size_t longest_bytes = 0;  // of these blocks
  std::size_t element_bytes = 1;  // of reductions on a device
  bool equal_blocks = true;
  bool can_be_cut = false;  // into chunks of the host MPI's call
};

Asked asked_for(const Sources& sources, node::Kind kind, int ranks, std::size_t size_bytes);

// Whether the host MPI's call can be cut into chunks, on predefined types: where its result does
// not depend on it.
bool can_be_cut(node::Kind kind);

// Whether chunks of the host MPI's call are worth it, where it can be cut.
bool worth_chunks(std::size_t size_bytes, const Asked& asked);

// The ways from device to device that a call may go, of which the first that its ranks can is
// taken: inboxes, straight between the users' buffers, regions. None: the host MPI's own.
struct DeviceWays {
  std::size_t lane_bytes = 0;     // of inboxes; 0: none
  std::uint64_t inbox_calls = 1;  // the call of its kind with which they are made
  bool regions = false;
  bool direct = false;
  // Of calls that go pair by pair: what a pair must have to reach into the other's buffer; 0: none
  // does.
  std::size_t lend_bytes = 0;
  std::size_t one_shot_bytes = 0;       // reductions up to here
  std::size_t spread_bytes = SIZE_MAX;  // straight ones from here on
  ccl::Library* library = nullptr;      // that is to do it, where it can
  // A node, at most, where the ranks are on several and the call goes in two levels; 0: it does
  // not.
  int leaders_max = 0;
  std::size_t message_bytes_min = 0;  // between two of them, for that to be worth it

  bool any() const noexcept { return regions || lane_bytes != 0 || library != nullptr; }
};
DeviceWays device_ways(const Question& question, const Asked& asked);

// What `question` comes to, where all ranks have device buffers and share a node.
Algorithm outcome(const Question& question, const Asked& asked);
// The same where they are on several nodes.
Algorithm outcome_across_nodes(const Question& question, const Asked& asked);

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
  bool is_reached = true;     // UCX reads its memory itself
  bool has_rdma = true;       // its node, an adapter that does
  bool has_idle_core = true;  // its node, for a proxy
};
NetWay outcome(std::size_t size_bytes, const AskedNetMessage& asked, const NetFacts& facts);
// Whether some message may have to go by a design.
bool may_go_by_design(const Sources& sources);

// The table that ACCORD_TABLE names, read once; empty where there is none or it cannot be used,
// which the text then says.
const Table& configured_table();
const std::string& table_problem();
// Once all ranks have turned out to have the same.
void use_table();

// The sources of this process; `info` of the communicator, or null.
Sources sources_with(const AlgorithmChoice* info);

}  // namespace accord::core
