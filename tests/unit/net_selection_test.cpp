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
