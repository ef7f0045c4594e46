// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which way messages between nodes go by ACCORD_NET_DESIGN, which the environment of each run sets;
// ACCORD_NET_BYTES is 64 KiB.
#include <gtest/gtest.h>

#include "base/config.h"
#include "coll/inter/transports.h"
#include "coll/select/selection.h"

namespace accord::coll {
namespace {

using device::AdapterReach;
using node::Kind;

constexpr std::size_t kLong = 65536;
constexpr const char* kTable = R"({"format": "accord-table", "schema": 1,
  "machine": {"runtime": "host"}, "choices": [{"collective": "net_send", "ranks": 2,
  "ranges": [{"first_bytes": 0, "algorithm": "active1"}]}]})";

struct Asking {
  const char* setting = "auto";
  const char* info = "auto";
  bool table = false;
};
std::string way(std::size_t size_bytes, const Asking& asking = {}, const NetFacts& facts = {}) {
  std::string problem;
  const auto setting = AlgorithmChoice::parse(asking.setting, problem);
  const auto info = AlgorithmChoice::parse(asking.info, problem);
  Table table;
  EXPECT_TRUE(Table::parse(kTable, table).ok());
  const Sources sources{&setting, &info, asking.table ? &table : nullptr};
  return name_of(outcome(size_bytes, asked_for_net_message(sources, size_bytes), facts));
}
bool is(const char* design) { return config().net_design == design; }

// What an allreduce in two levels comes to.
std::string collective(const char* algorithm = "auto", Reach reach = {}) {
  reach.one_node = false;
  const Question question{
      .kind = node::Kind::allreduce, .ranks = 4, .size_bytes = 1 << 20, .longest_bytes = 1 << 20};
  return name_of(outcome(question, {find_algorithm(algorithm).value(), Origin::setting}, reach));
}

TEST(net_selection, collectives_go_by_the_same_designs) {
  if (is("auto")) {
    EXPECT_EQ(collective(), "two-level");
    EXPECT_EQ(collective("auto", {.adapters = AdapterReach::fast}), "two-level-direct");
    EXPECT_EQ(collective("two-level-active2"), "two-level-active2");
    EXPECT_EQ(collective("two-level-host", {.adapters = AdapterReach::fast}), "two-level");
    EXPECT_EQ(collective("two-level-single-leader"), "two-level-single-leader");
  }
  if (is("passive")) {
    EXPECT_EQ(collective(), "two-level-passive");
    EXPECT_EQ(collective("two-level", {.adapters = AdapterReach::fast}), "two-level-passive");
    EXPECT_EQ(collective("two-level-direct"), "two-level-direct");
    EXPECT_EQ(collective("two-level-host"), "two-level");
  }
  // Nobody has joined what these need.
  if (is("host")) {
    EXPECT_EQ(collective("auto", {.adapters = AdapterReach::fast}), "two-level");
    EXPECT_EQ(collective("two-level-direct"), "two-level");
  }
}

// What a table says of ranks on several nodes is for these alone.
TEST(net_selection, a_table_says_what_goes_between_nodes) {
  Table table;
  ASSERT_TRUE(Table::parse(R"({"format": "accord-table", "schema": 1,
    "machine": {"runtime": "host"}, "choices": [
    {"collective": "bcast", "ranks": 4, "ranges": [{"first_bytes": 0, "algorithm": "node-direct"}]},
    {"collective": "bcast", "ranks": 4, "across_nodes": true, "ranges": [
      {"first_bytes": 0, "algorithm": "auto"},
      {"first_bytes": 100000, "algorithm": "two-level-passive"},
      {"first_bytes": 8000000, "algorithm": "two-level"}]}]})",
                           table)
                  .ok());
  EXPECT_TRUE(table.has_design());
  const Sources sources{.table = &table};
  const auto of = [&](std::size_t bytes, bool one_node) {
    const Question question{
        .kind = node::Kind::bcast, .ranks = 4, .size_bytes = bytes, .longest_bytes = bytes};
    return std::string(name_of(outcome(question, asked_for(sources, node::Kind::bcast, 4, bytes),
                                       {.one_node = one_node, .adapters = AdapterReach::fast})));
  };
  EXPECT_EQ(of(200000, true), "node-direct");
  if (is("auto")) {
    EXPECT_EQ(of(200000, false), "two-level-passive");
    EXPECT_EQ(of(9000000, false), "two-level");
  }
  if (is("host")) {
    EXPECT_EQ(of(200000, false), of(9000000, false));
  }
  Table wrong;
  EXPECT_FALSE(Table::parse(R"({"format": "accord-table", "schema": 1,
    "machine": {"runtime": "host"}, "choices": [{"collective": "bcast", "ranks": 2,
    "across_nodes": true, "ranges": [{"first_bytes": 0, "algorithm": "inbox"}]}]})",
                            wrong)
                   .ok());
}

TEST(net_selection, a_name_for_collectives_makes_the_job_ready_for_designs) {
  std::string problem;
  const auto by_name = AlgorithmChoice::parse("alltoall:two-level-active1", problem);
  const auto without = AlgorithmChoice::parse("two-level", problem);
  EXPECT_TRUE(by_name.has_design());
  EXPECT_FALSE(without.has_design());
  EXPECT_TRUE(may_go_by_design({.setting = &by_name}));
  EXPECT_EQ(may_go_by_design({.setting = &without}), !is("host"));
  Table table;
  ASSERT_TRUE(Table::parse(R"({"format": "accord-table", "schema": 1,
    "machine": {"runtime": "host"}, "choices": [{"collective": "bcast", "ranks": 2,
    "ranges": [{"first_bytes": 0, "algorithm": "two-level-passive"}]}]})",
                           table)
                  .ok());
  EXPECT_TRUE(table.has_design());
}

// A table has no say in what else the machine does.
TEST(net_selection, collectives_by_table_spend_no_core_that_is_missed) {
  const core::Placement placement = core::Placement::of(std::vector<std::uint64_t>{1, 2});
  const auto way = [&](Origin origin, bool has_core) {
    const Question question{
        .kind = node::Kind::bcast, .ranks = 2, .size_bytes = 1 << 20, .longest_bytes = 1 << 20};
    CollArgs args;
    args.ways = device_ways(question, {find_algorithm("two-level-active1").value(), origin});
    args.host.make_transport = [](unsigned, core::Wire&) { return nullptr; };
    args.host.has_idle_core = [=] { return has_core; };
    return name_of(between_nodes(args, placement));
  };
  if (is("host")) GTEST_SKIP();
  EXPECT_STREQ(way(Origin::table, true), "active1");
  EXPECT_STREQ(way(Origin::table, false), "passive");
  EXPECT_STREQ(way(Origin::setting, false), "active1");
  EXPECT_STREQ(way(Origin::info, false), "active1");
}

TEST(net_selection, auto_is_direct_where_an_adapter_reaches_the_memory) {
  if (!is("auto")) GTEST_SKIP();
  EXPECT_EQ(way(kLong - 1), "staged");
  EXPECT_EQ(way(kLong), "direct");
  EXPECT_EQ(way(kLong, {}, {.is_reached = false}), "passive");
  EXPECT_EQ(way(kLong, {}, {.adapters = AdapterReach::none}), "staged");
  EXPECT_EQ(way(kLong, {}, {.is_reached = false, .adapters = AdapterReach::none}), "staged");
  EXPECT_EQ(way(kLong, {.table = true}, {.adapters = AdapterReach::none}), "active1");
  EXPECT_EQ(way(kLong, {.table = true}, {.has_idle_core = false}), "passive");
  EXPECT_EQ(way(kLong, {.table = true}), "active1");
  EXPECT_EQ(way(kLong, {.info = "net_send:staged", .table = true}), "staged");
  EXPECT_EQ(way(kLong, {.setting = "net_send:passive", .info = "net_send:staged"}), "passive");
  EXPECT_TRUE(may_go_by_design({}));
}

TEST(net_selection, auto_spares_adapters_that_read_slowly) {
  if (!is("auto")) GTEST_SKIP();
  constexpr std::size_t kMiB = 1 << 20;
  const auto message = [](std::size_t bytes, bool has_core) {
    return way(bytes, {}, {.adapters = AdapterReach::slow, .has_idle_core = has_core});
  };
  EXPECT_EQ(message(kMiB - 1, true), "staged");
  EXPECT_EQ(message(kMiB, true), "active2");
  EXPECT_EQ(message(kMiB, false), "passive");
  const auto call = [](Kind kind, std::size_t bytes) {
    return std::string(name_of(transport_by_network(AdapterReach::slow, kind, bytes)));
  };
  EXPECT_EQ(call(Kind::allreduce, 32 * kMiB - 1), "staged");
  EXPECT_EQ(call(Kind::allreduce, 32 * kMiB), "active1");
  EXPECT_EQ(call(Kind::allgather, 32 * kMiB), "active1");
  EXPECT_EQ(call(Kind::gather, 32 * kMiB), "active2");
  for (const Kind kind : {Kind::bcast, Kind::scatter, Kind::scan, Kind::alltoall, Kind::alltoallv})
    EXPECT_EQ(call(kind, 64 * kMiB), "staged");
}

TEST(net_selection, auto_lets_adapters_at_half_the_rate_read_what_is_short) {
  if (!is("auto")) GTEST_SKIP();
  constexpr std::size_t kMiB = 1 << 20;
  constexpr auto kHalf = AdapterReach::half;
  EXPECT_EQ(way(kMiB - 1, {}, {.adapters = kHalf}), "direct");
  EXPECT_EQ(way(kMiB - 1, {}, {.is_reached = false, .adapters = kHalf}), "staged");
  EXPECT_EQ(way(kMiB, {}, {.adapters = kHalf}), "active2");
  const auto call = [](Kind kind, std::size_t bytes) {
    return std::string(name_of(transport_by_network(kHalf, kind, bytes)));
  };
  EXPECT_EQ(call(Kind::alltoall, kMiB / 4 - 1), "direct");
  EXPECT_EQ(call(Kind::alltoall, kMiB / 4), "staged");
  EXPECT_EQ(call(Kind::alltoallv, 0), "direct");  // up to that, too
  EXPECT_EQ(offers_end(kHalf), kMiB / 4);
  for (const AdapterReach other : {AdapterReach::fast, AdapterReach::slow})
    EXPECT_EQ(offers_end(other), SIZE_MAX);
  EXPECT_EQ(call(Kind::gather, 32 * kMiB), "active2");
}

TEST(net_selection, collectives_by_rule_spend_no_core_that_is_missed) {
  if (!is("auto")) GTEST_SKIP();
  core::Placement placement = core::Placement::of(std::vector<std::uint64_t>{1, 2});
  placement.adapters = AdapterReach::slow;
  constexpr std::size_t kBytes = 64 << 20;
  CollArgs args;
  args.ways = device_ways(
      {.kind = Kind::gather, .ranks = 2, .size_bytes = kBytes, .longest_bytes = kBytes}, {});
  args.exchange = node::Call{.kind = Kind::gather, .size = 2, .block_bytes = kBytes};
  args.host.make_transport = [](unsigned, core::Wire&) { return nullptr; };
  for (const bool has_core : {true, false}) {
    args.host.has_idle_core = [=] { return has_core; };
    EXPECT_STREQ(name_of(between_nodes(args, placement)), has_core ? "active2" : "passive");
  }
}

TEST(net_selection, a_design_by_name_goes_before_info_and_table) {
  if (!is("passive")) GTEST_SKIP();
  EXPECT_EQ(way(kLong - 1), "staged");
  EXPECT_EQ(way(kLong), "passive");
  EXPECT_EQ(way(kLong, {.info = "net_send:direct", .table = true}), "passive");
  EXPECT_EQ(way(100, {.setting = "net_send:direct"}), "direct");
  EXPECT_TRUE(may_go_by_design({}));
}

TEST(net_selection, host_is_for_all) {
  if (!is("host")) GTEST_SKIP();
  EXPECT_EQ(way(kLong, {.info = "net_send:direct", .table = true}), "staged");
  EXPECT_FALSE(may_go_by_design({}));
}

}  // namespace
}  // namespace accord::coll
