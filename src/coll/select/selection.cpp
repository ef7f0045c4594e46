// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/select/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/config.h"
#include "device/direct_work.h"
#include "device/registry.h"
#include "node/outbox.h"

namespace accord::coll {
namespace {

using device::AdapterReach;
using node::Kind;

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
    return choice == nullptr ? Variant() : choice->of(kind);
  };
  if (const Variant wanted = choice_of(sources.setting); wanted != Variant())
    return {wanted, Origin::setting};
  if (const Variant wanted = choice_of(sources.info); wanted != Variant())
    return {wanted, Origin::info};
  // Where calls go pair by pair no size is common to all ranks.
  if (sources.table == nullptr || node::goes_by_pairs(kind)) return {};
  Asked asked;
  const Table::Range* const across = sources.table->find_across(kind, ranks, size_bytes);
  if (across != nullptr && across->algorithm != Variant())
    asked.between = across->algorithm.between.way == NetWay::Way::automatic
                        ? NetWay{NetWay::Way::staged}
                        : across->algorithm.between;
  const Table::Range* const range = sources.table->find(kind, ranks, size_bytes);
  if (range == nullptr || range->algorithm == Variant()) return asked;
  asked.variant = range->algorithm;
  asked.origin = Origin::table;
  return asked;
}

bool can_be_cut(Kind kind) {
  const bool reduces = kind == Kind::reduce || kind == Kind::allreduce;
  return kind == Kind::bcast || (reduces && !config().deterministic);
}

bool worth_chunks(std::size_t size_bytes, const Asked& asked) {
  if (asked.for_host()) return asked.is(algorithms::chunks);
  return config().pipeline_bytes != 0 && size_bytes >= config().pipeline_bytes;
}

DeviceWays device_ways(const Question& question, const Asked& wish) {
  // What cannot be as asked goes by the rule.
  const bool has_it = wish.is_automatic() || wish.variant.algorithm->has(question.kind);
  const bool can_be = has_it && (!wish.is(algorithms::chunks) || question.can_be_cut);
  Asked asked = wish;
  if (!can_be) asked.variant = {};
  DeviceWays ways{.offered = 0};
  if (asked.for_host()) return ways;
  const auto registry = all_of_registry();
  for (std::size_t line = registry.size(); line-- > 0;) {
    const Algorithm& algorithm = *registry[line];
    const bool may = algorithm.has(question.kind) &&
                     (algorithm.offer == nullptr || algorithm.offer(question, asked, ways));
    ways.offered |= std::uint32_t{may} << line;
  }
  return ways;
}

const Algorithm& select(const Situation& situation) noexcept {
  const auto registry = all_of_registry();
  for (std::size_t line = 0; line < registry.size(); ++line) {
    const Algorithm& algorithm = *registry[line];
    const bool is_offered = algorithm.by_host || (situation.offered >> line & 1) != 0;
    if (is_offered && algorithm.has(situation.kind) && algorithm.takes(situation)) return algorithm;
  }
  return algorithms::staged;
}

Variant outcome(const Question& question, const Asked& asked, Reach reach) {
  DeviceWays ways = device_ways(question, asked);
  if (ways.between == NetWay())
    ways.between = transport_by_network(reach.adapters, question.kind, question.longest_bytes);
  const bool by_pairs = node::goes_by_pairs(question.kind);
  // Pair by pair it is the longest pairs that make a call worth it.
  const std::size_t long_bytes =
      std::max(config().node_bytes, reach.one_node ? 0 : ways.far_pair_bytes);
  const bool all_short = by_pairs && question.longest_bytes < long_bytes;
  const bool is_seldom = all_short || ways.only_bundled;  // as far as anybody knows
  const Algorithm& algorithm =
      select({.kind = question.kind,
              .offered = ways.offered,
              .all_short = all_short,
              .library = ways.library != nullptr,
              .inboxes = reach.one_node && !reach.in_turns && ways.lane_bytes != 0,
              .packets = reach.one_node && !reach.in_turns && reach.packets && ways.lane_bytes != 0,
              .host_regions = reach.one_node && ways.wants_host_regions(reach.in_turns),
              .regions = reach.one_node && ways.regions && (ways.in_turns || !reach.in_turns),
              .two_levels = !reach.one_node && ways.leaders_max != 0 && !is_seldom,
              .chunks = question.can_be_cut && worth_chunks(question.size_bytes, asked)});
  return algorithm.in_detail != nullptr ? algorithm.in_detail(question, ways)
                                        : Variant{.algorithm = &algorithm};
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
  if (config().p2p_bytes == 0 || size_bytes < node::MessageHeader::kTicketBytes)
    return MessageWay::staged;
  MessageWay way = asked.way;
  if (way == MessageWay::automatic) {
    if (size_bytes < config().p2p_bytes) return MessageWay::staged;
    way = MessageWay::kernel;
  }
  return way == MessageWay::kernel && size_bytes > device::direct_copy_bytes() ? MessageWay::engine
                                                                               : way;
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

constexpr NetWay kStaged{NetWay::Way::staged};
NetWay way_named(const char* name) { return find_net_way(name).value_or(kStaged); }

// Where adapters read device memory slowly, copy engines and proxies do it for long messages and
// collectives: from where on they gain was measured on beds (bench/results/bed, which
// bench/bed_rule.py compares this rule with).
constexpr std::size_t kProxiedMessageBytes = std::size_t{1} << 20;
constexpr std::size_t kProxiedBlockBytes = std::size_t{32} << 20;
// Copies take longer to begin than adapters that are not too slow take to read so much.
constexpr std::size_t kReadBlockBytes = std::size_t{256} << 10;

NetWay way_by_rule(std::size_t size_bytes, const NetFacts& facts) {
  if (size_bytes < config().net_bytes || config().net_design == "table") return kStaged;
  switch (facts.adapters) {
    case AdapterReach::none:
      break;
    case AdapterReach::slow:
      return size_bytes < kProxiedMessageBytes ? kStaged : way_named("active2");
    case AdapterReach::half:
      if (size_bytes >= kProxiedMessageBytes) return way_named("active2");
      return facts.is_reached ? way_named("direct") : kStaged;
    case AdapterReach::fast:
      // What UCX does not reach it has to be copied for. By passive the device does that while the
      // adapter is at work, and no core is spent.
      return way_named(facts.is_reached ? "direct" : "passive");
  }
  // Where CPUs do the network's work a design costs what staging does, or more (2 x H200 by TCP:
  // 0.5 to 1.5 GB/s, staged 5).
  return kStaged;
}

}  // namespace

// The proxies of active designs spend a core each.
NetWay without_core(const NetWay& way) {
  const bool spends = std::string_view(name_of(way)).starts_with("active");
  return spends ? find_net_way("passive").value_or(way) : way;
}

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

NetWay transport_by_setting() {
  return config().net_design == "table" ? NetWay{NetWay::Way::staged} : named_way();
}

// Where adapters are slow, staging overlaps chunk by chunk and is behind in long calls alone. Of
// those that go out of one rank, and pair by pair, in none: the link is full whatever fills it. In
// those that come to one rank an adapter's writes are the limit, which active2 does without.
NetWay transport_by_network(AdapterReach adapters, Kind kind, std::size_t block_bytes) {
  if (adapters == AdapterReach::fast) return way_named("direct");
  const bool by_pairs = node::goes_by_pairs(kind) || kind == Kind::alltoall;
  if (adapters == AdapterReach::half && by_pairs && block_bytes < kReadBlockBytes)
    return way_named("direct");
  if (adapters == AdapterReach::none || block_bytes < kProxiedBlockBytes) return kStaged;
  if (by_pairs) return kStaged;
  const node::Pattern pattern = node::pattern_of(kind);
  if (pattern.from_root || pattern.is_prefix) return kStaged;
  return way_named(pattern.to_root ? "active2" : "active1");
}

std::size_t offers_end(AdapterReach adapters) {
  return adapters == AdapterReach::half ? kReadBlockBytes : SIZE_MAX;
}

// The info of a communicator comes later than this has to be known.
bool may_go_by_design(const Sources& sources) {
  const std::string& name = config().net_design;
  const bool is_asked_for = sources.setting != nullptr && sources.setting->has_design();
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

}  // namespace accord::coll
