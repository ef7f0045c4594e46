// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The names of algorithms, and which of them ACCORD_ALGORITHM asks for. Those of collectives come
// from the registry (coll/algorithm.h). Equal on all ranks, since the setting is. Knows no mpi.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coll/algorithm.h"

namespace accord::coll {

// By the names that settings, tables and people use; the collectives' are those of MPI, as in
// "reduce_scatter_block".
std::optional<Variant> find_algorithm(std::string_view name);
std::optional<node::Kind> find_collective(std::string_view name);
const char* name_of(const Variant& variant);
const char* name_of(node::Kind kind);

// The ways of a message from a device to a rank of its node, which are others: through the host
// MPI, or fetched by its receiver with a kernel (where it is short enough for that) or with a copy
// engine. What settings, tables and people call such calls is "send".
enum class MessageWay { automatic, staged, kernel, engine };
inline constexpr std::string_view kMessages = "send";
// Of a message's two ranks, in tables.
inline constexpr int kRanksOfMessage = 2;
std::optional<MessageWay> find_message_way(std::string_view name);
const char* name_of(MessageWay way);

// Messages from a device to a rank of another node are "net_send".
inline constexpr std::string_view kNetMessages = "net_send";
std::optional<NetWay> find_net_way(std::string_view name);
const char* name_of(const NetWay& way);

// One row a name, for programs that try them all. `path` is what accord_last_path says of a call
// that went this way.
struct AlgorithmRow {
  const char* name;
  Variant value;
  const char* path;
};
std::vector<AlgorithmRow> all_algorithms();
struct MessageWayRow {
  const char* name;
  MessageWay value;
  const char* path;
};
std::vector<MessageWayRow> all_message_ways();
struct NetWayRow {
  const char* name;
  NetWay value;
  const char* path;
};
std::vector<NetWayRow> all_net_ways();
std::vector<const char*> all_collectives();

// By its name, since what else is in it may be of this process alone; for hashes that ranks
// compare.
std::uint64_t mixed(std::uint64_t hash, const char* name);

// What a list such as "node", "staged,allreduce:inbox" or "send:staged" asks for. Messages only go
// by what is said of them, within a node and between nodes.
class AlgorithmChoice {
 public:
  // Leaves out what it does not understand, and says so in `problem`.
  static AlgorithmChoice parse(std::string_view list, std::string& problem);

  // An item for this collective counts more than one for all; of two for the same the last counts.
  Variant of(node::Kind kind) const;
  MessageWay of_messages() const noexcept { return of_messages_; }
  const NetWay& of_net_messages() const noexcept { return of_net_messages_; }
  // Something goes by a design between nodes.
  bool has_design() const;
  // Something is not automatic.
  bool any() const;
  // Equal exactly where the choices are.
  std::uint64_t hash() const;

 private:
  struct OfKind {
    node::Kind kind;
    Variant variant;
  };
  void read_item(std::string_view item, std::string& problem);

  Variant of_all_;
  std::vector<OfKind> of_kinds_;
  MessageWay of_messages_ = MessageWay::automatic;
  NetWay of_net_messages_;
};

// Of ACCORD_ALGORITHM, read once.
const AlgorithmChoice& algorithm_choice();
// What is wrong with it, the setting named; empty when nothing is.
const std::string& algorithm_problem();

}  // namespace accord::coll
