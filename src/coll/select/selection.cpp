// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/select/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <string_view>

#include "base/config.h"
#include "coll/inter/plan.h"
#include "device/inbox.h"
#include "device/registry.h"
#include "node/outbox.h"
#include "node/quick_copy.h"

namespace accord::core {
namespace {

using node::Kind;
using Way = Algorithm::Way;
using Shots = Algorithm::Shots;

bool has_shots(Kind kind) { return kind == Kind::allreduce || kind == Kind::reduce; }

bool wants_two_levels(Way way) { return way == Way::two_level || way == Way::single_leader; }

// The ways through regions, or straight with these as the other choice.
bool wants_regions(Way way) {
  return way == Way::node || way == Way::direct || wants_two_levels(way);
}

// Of calls in two levels; 0: this is none.
int leaders_max(const Question& question, Way way) {
  if (!TwoLevelPlan::exists(question.kind) && !node::goes_by_pairs(question.kind)) return 0;
  // Pair by pair each rank says whether it has one that is.
  const bool long_enough =
      config().two_level_bytes != 0 &&
      (node::goes_by_pairs(question.kind) || question.size_bytes >= config().two_level_bytes);
  // Inboxes are of one node, and a library may turn out to be.
  const bool by_rule = way == Way::automatic || way == Way::inbox || way == Way::ccl;
  if (!wants_two_levels(way) && !(by_rule && long_enough)) return 0;
  return way == Way::single_leader ? 1 : INT_MAX;
}

// Many nodes cut a message into parts that are not worth a message each: then it goes another way,
// unless somebody has asked for this one.
std::size_t message_bytes_min(Way way) {
  constexpr std::size_t kWorthIt = std::size_t{16} << 10;
  return wants_two_levels(way) ? 0 : kWorthIt;
}

// For two ranks all of it is no more than an exchange of shares; the kernel alone then brings it
// over.
std::size_t one_shot_bytes(Shots shots, int ranks) {
  constexpr std::size_t kShareOfMany = 16;
  if (shots == Shots::one) return SIZE_MAX;
  if (shots != Shots::by_size) return 0;
  return ranks == 2 ? config().one_shot_bytes : config().one_shot_bytes / kShareOfMany;
}

// Only allreduce by itself: where engines store nothing, nothing fills their pauses between pieces
// (2 x H200, 256 MiB: reduce_scatter 295 GB/s, its kernel alone 312; reduce 329 and 357).
std::size_t spread_bytes(Shots shots, Kind kind) {
  if (shots == Shots::spread) return 1;
  const bool is_worth_it = kind == Kind::allreduce && config().spread_bytes != 0;
  return shots == Shots::by_size && is_worth_it ? config().spread_bytes : SIZE_MAX;
}

// Of inboxes for such a call; 0: it does not fit.
std::size_t lane_bytes(const Question& question) {
  const bool units = device::kInboxUnitBytes % question.element_bytes == 0;
  if (!question.equal_blocks || !units) return 0;
  if (question.ranks > device::kInboxRanksMax || question.ranks < 2) return 0;
  const std::size_t share_bytes =
      config().inbox_bytes / static_cast<std::size_t>(question.ranks - 1);
  const std::size_t whole_bytes = share_bytes / device::kInboxUnitBytes * device::kInboxUnitBytes;
  return question.longest_bytes <= whole_bytes ? whole_bytes : 0;
}

struct TableInUse {
  Table table;
  std::string problem;
  std::atomic<bool> agreed{false};
};

// Without a look at the devices themselves: the program may choose these after MPI_Init.
Status check_runtime(const Table& table) {
  bool none_present = true;
  for (device::DeviceRuntime* runtime : device::runtimes()) {
    if (!runtime->present()) continue;
    if (runtime->name() == table.runtime()) return {};
    none_present = false;
  }
  if (none_present) return {};
  return {StatusCode::invalid_argument,
          fmt::format("it was measured with the runtime {}, which is not here", table.runtime())};
}

void read_table(const std::string& path, TableInUse& read) {
  if (path == "off") return;
  Status status = Table::read(path, read.table);
  if (status.ok()) status = check_runtime(read.table);
  if (status.ok()) return;
  read.table = {};
  read.problem = fmt::format("ACCORD_TABLE: {} is not used: {}; the built-in rule chooses", path,
                             status.message());
}

TableInUse& table_in_use() {
  // Never destroyed: calls of MPI may come until the process ends.
  static TableInUse& made = []() -> TableInUse& {
    auto& read = *new TableInUse;
    read_table(config().table, read);
    return read;
  }();
  return made;
}

}  // namespace

const char* name_of(Origin origin) {
  switch (origin) {
    case Origin::setting:
      return "setting";
    case Origin::info:
      return "info";
    case Origin::table:
      return "table";
    case Origin::rule:
      break;
  }
  return "rule";
}

Asked asked_for(const Sources& sources, Kind kind, int ranks, std::size_t size_bytes) {
  const auto choice_of = [kind](const AlgorithmChoice* choice) {
    return choice == nullptr ? Algorithm() : choice->of(kind);
  };
  if (const Algorithm wanted = choice_of(sources.setting); wanted != Algorithm())
    return {wanted, Origin::setting};
  if (const Algorithm wanted = choice_of(sources.info); wanted != Algorithm())
    return {wanted, Origin::info};
  // Where calls go pair by pair no size is common to all ranks.
  if (sources.table == nullptr || node::goes_by_pairs(kind)) return {};
  const Table::Range* const range = sources.table->find(kind, ranks, size_bytes);
  if (range == nullptr || range->algorithm == Algorithm()) return {};
  return {range->algorithm, Origin::table};
}

bool can_be_cut(Kind kind) {
  const bool reduces = kind == Kind::reduce || kind == Kind::allreduce;
  return kind == Kind::bcast || (reduces && !config().deterministic);
}

bool worth_chunks(std::size_t size_bytes, const Asked& asked) {
  if (asked.for_host()) return asked.algorithm.way == Way::pipelined;
  return config().pipeline_bytes != 0 && size_bytes >= config().pipeline_bytes;
}

DeviceWays device_ways(const Question& question, const Asked& asked) {
  const auto [way, shots, library] = asked.algorithm;
  DeviceWays ways;
  if (way == Way::staged || (way == Way::pipelined && question.can_be_cut)) return ways;
  ways.library = library;
  if (node::is_among_neighbours(question.kind)) return ways;
  const bool pairs = node::goes_by_pairs(question.kind);
  const std::size_t node_bytes = config().node_bytes;
  const std::size_t direct_bytes = config().direct_bytes;
  ways.regions =
      wants_regions(way) || (node_bytes != 0 && (pairs || question.size_bytes >= node_bytes));
  // Pairs go by inboxes and regions or not at all.
  ways.lane_bytes = wants_regions(way) || (pairs && !ways.regions) ? 0 : lane_bytes(question);
  // A table is for calls that come again and again, and making inboxes takes milliseconds.
  const bool at_once = way == Way::inbox && asked.origin != Origin::table;
  ways.inbox_calls = at_once ? 1 : static_cast<std::uint64_t>(config().inbox_calls);
  const bool long_enough = direct_bytes != 0 && question.longest_bytes >= direct_bytes;
  ways.direct = way == Way::direct || (!wants_regions(way) && long_enough);
  ways.leaders_max = ways.regions ? leaders_max(question, way) : 0;
  ways.message_bytes_min = message_bytes_min(way);
  // Lanes of a region take twice the time of a buffer that is reached directly.
  const std::size_t pair_bytes = std::min<std::size_t>(direct_bytes, node_bytes);
  ways.lend_bytes = way == Way::direct ? 1 : wants_regions(way) ? 0 : pair_bytes;
  ways.one_shot_bytes = one_shot_bytes(shots, question.ranks);
  ways.spread_bytes = spread_bytes(shots, question.kind);
  return ways;
}

Algorithm outcome(const Question& question, const Asked& asked) {
  const DeviceWays ways = device_ways(question, asked);
  const bool pairs = node::goes_by_pairs(question.kind);
  if (ways.library != nullptr) return {.way = Way::ccl, .library = ways.library};
  if (ways.lane_bytes != 0) return {Way::inbox};
  // Pair by pair it is the longest pairs that make a call worth it.
  if (ways.regions && (!pairs || question.longest_bytes >= config().node_bytes)) {
    const bool lent = ways.lend_bytes != 0 && question.longest_bytes >= ways.lend_bytes;
    Algorithm algorithm{(pairs ? lent : ways.direct) ? Way::direct : Way::node};
    const bool spread = algorithm.way == Way::direct && question.longest_bytes >= ways.spread_bytes;
    if (has_shots(question.kind))
      algorithm.shots = question.longest_bytes <= ways.one_shot_bytes ? Shots::one
                        : spread                                      ? Shots::spread
                                                                      : Shots::two;
    return algorithm;
  }
  const bool in_chunks = question.can_be_cut && worth_chunks(question.size_bytes, asked);
  return {in_chunks ? Way::pipelined : Way::staged};
}

Algorithm outcome_across_nodes(const Question& question, const Asked& asked) {
  const DeviceWays ways = device_ways(question, asked);
  if (ways.library != nullptr) return {.way = Way::ccl, .library = ways.library};
  // There are leaders of what all ranks share only.
  if (node::goes_by_pairs(question.kind)) {
    const bool is_long = question.longest_bytes >= config().node_bytes;
    return {ways.leaders_max != 0 && is_long ? Way::two_level : Way::staged};
  }
  const int leaders = ways.leaders_max;
  if (leaders != 0) return {leaders == 1 ? Way::single_leader : Way::two_level};
  const bool in_chunks = question.can_be_cut && worth_chunks(question.size_bytes, asked);
  return {in_chunks ? Way::pipelined : Way::staged};
}

AskedMessage asked_for_message(const Sources& sources, std::size_t size_bytes) {
  const auto by_rule = MessageWay::automatic;
  if (sources.setting != nullptr && sources.setting->of_messages() != by_rule)
    return {sources.setting->of_messages(), Origin::setting};
  if (sources.info != nullptr && sources.info->of_messages() != by_rule)
    return {sources.info->of_messages(), Origin::info};
  if (sources.table == nullptr) return {};
  const Table::MessageRange* const range = sources.table->find_message(size_bytes);
  if (range == nullptr || range->algorithm == by_rule) return {};
  return {range->algorithm, Origin::table};
}

MessageWay outcome(std::size_t size_bytes, const AskedMessage& asked) {
  if (config().p2p_bytes == 0 || size_bytes < sizeof(node::MessageHeader))
    return MessageWay::staged;
  MessageWay way = asked.way;
  if (way == MessageWay::automatic) {
    if (size_bytes < config().p2p_bytes) return MessageWay::staged;
    way = MessageWay::kernel;
  }
  const std::size_t most_bytes =
      std::min<std::size_t>(config().quick_copy_bytes, node::QuickCopy::kBytesMax);
  return way == MessageWay::kernel && size_bytes > most_bytes ? MessageWay::engine : way;
}

namespace {

// ACCORD_NET_DESIGN, where it names a way: an item of ACCORD_ALGORITHM says more, but nobody else.
NetWay named_way() {
  static const NetWay named = [] {
    const std::string& name = config().net_design;
    if (name == "host") return NetWay{NetWay::Way::staged};
    return name == "table" ? NetWay() : find_net_way(name).value_or(NetWay());
  }();
  return named;
}

NetWay way_by_rule(std::size_t size_bytes, const NetFacts& facts) {
  if (size_bytes < config().net_bytes || config().net_design == "table")
    return {NetWay::Way::staged};
  // Where CPUs do the network's work a design costs what staging does, or more (2 x H200 by TCP:
  // 0.5 to 1.5 GB/s, staged 5).
  if (!facts.has_rdma) return {NetWay::Way::staged};
  // What UCX does not reach it has to be copied for. By passive the device does that while the
  // adapter is at work, and no core is spent; whether a proxy that spends one gains more depends on
  // the machine, and is for a table to say.
  const char* const name = facts.is_reached ? "direct" : "passive";
  return find_net_way(name).value_or(NetWay{NetWay::Way::staged});
}

// The proxies of active designs spend a core each, which somebody else would miss.
NetWay without_core(const NetWay& way) {
  const bool spends = std::string_view(name_of(way)).starts_with("active");
  return spends ? find_net_way("passive").value_or(way) : way;
}

}  // namespace

AskedNetMessage asked_for_net_message(const Sources& sources, std::size_t size_bytes) {
  const NetWay by_rule;
  if (sources.setting != nullptr && sources.setting->of_net_messages() != by_rule)
    return {sources.setting->of_net_messages(), Origin::setting};
  if (const NetWay named = named_way(); named != by_rule)
    return {size_bytes < config().net_bytes ? NetWay{NetWay::Way::staged} : named, Origin::setting};
  if (sources.info != nullptr && sources.info->of_net_messages() != by_rule)
    return {sources.info->of_net_messages(), Origin::info};
  if (sources.table == nullptr) return {};
  const Table::NetRange* const range = sources.table->find_net_message(size_bytes);
  if (range == nullptr || range->algorithm == by_rule) return {};
  return {range->algorithm, Origin::table};
}

NetWay outcome(std::size_t size_bytes, const AskedNetMessage& asked, const NetFacts& facts) {
  if (size_bytes < sizeof(node::MessageHeader)) return {NetWay::Way::staged};
  const NetWay way = asked.way == NetWay() ? way_by_rule(size_bytes, facts) : asked.way;
  const bool is_wish = asked.origin == Origin::setting || asked.origin == Origin::info;
  return facts.has_idle_core || is_wish ? way : without_core(way);
}

// The info of a communicator comes later than this has to be known.
bool may_go_by_design(const Sources& sources) {
  const std::string& name = config().net_design;
  const bool is_asked_for =
      sources.setting != nullptr && sources.setting->of_net_messages().way == NetWay::Way::design;
  const bool by_table = sources.table != nullptr && sources.table->has_design();
  return is_asked_for || (name != "host" && (name != "table" || by_table));
}

const Table& configured_table() { return table_in_use().table; }
const std::string& table_problem() { return table_in_use().problem; }
void use_table() { table_in_use().agreed.store(true); }

Sources sources_with(const AlgorithmChoice* info) {
  static TableInUse& in_use = table_in_use();
  return {&algorithm_choice(), info, in_use.agreed.load() ? &in_use.table : nullptr};
}

}  // namespace accord::core
