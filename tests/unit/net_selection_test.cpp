// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which way messages between nodes go by ACCORD_NET_DESIGN, which the environment of each run sets;
// ACCORD_NET_BYTES is 64 KiB.
#include <gtest/gtest.h>

#include "base/config.h"
#include "coll/select/selection.h"

namespace accord::coll {
namespace {

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
    EXPECT_EQ(collective("auto", {.has_rdma = true}), "two-level-direct");
    EXPECT_EQ(collective("two-level-active2"), "two-level-active2");
    EXPECT_EQ(collective("two-level-single-leader"), "two-level-single-leader");
  }
  if (is("passive")) {
    EXPECT_EQ(collective(), "two-level-passive");
    EXPECT_EQ(collective("two-level", {.has_rdma = true}), "two-level-passive");
    EXPECT_EQ(collective("two-level-direct"), "two-level-direct");
  }
  // Nobody has joined what these need.
  if (is("host")) {
    EXPECT_EQ(collective("auto", {.has_rdma = true}), "two-level");
    EXPECT_EQ(collective("two-level-direct"), "two-level");
  }
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

TEST(net_selection, auto_is_direct_where_an_adapter_reaches_the_memory) {
  if (!is("auto")) GTEST_SKIP();
  EXPECT_EQ(way(kLong - 1), "staged");
  EXPECT_EQ(way(kLong), "direct");
  EXPECT_EQ(way(kLong, {}, {.is_reached = false}), "passive");
  EXPECT_EQ(way(kLong, {}, {.has_rdma = false}), "staged");
  EXPECT_EQ(way(kLong, {}, {.is_reached = false, .has_rdma = false}), "staged");
  EXPECT_EQ(way(kLong, {.table = true}, {.has_rdma = false}), "active1");
  EXPECT_EQ(way(kLong, {.table = true}, {.has_idle_core = false}), "passive");
  EXPECT_EQ(way(kLong, {.table = true}), "active1");
  EXPECT_EQ(way(kLong, {.info = "net_send:staged", .table = true}), "staged");
  EXPECT_EQ(way(kLong, {.setting = "net_send:passive", .info = "net_send:staged"}), "passive");
  EXPECT_TRUE(may_go_by_design({}));
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
