// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ACCORD_ALGORITHM may say, and what it means for which collective.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "coll/select/names.h"

namespace accord::coll {
namespace {

using node::Kind;

Variant named(std::string_view name) { return find_algorithm(name).value(); }
AlgorithmChoice understood(std::string_view list) {
  std::string problem;
  AlgorithmChoice choice = AlgorithmChoice::parse(list, problem);
  EXPECT_EQ(problem, "") << list;
  return choice;
}

TEST(algorithm, nothing_is_asked_for_by_default) {
  EXPECT_FALSE(understood("auto").any());
  EXPECT_EQ(understood("auto").of(Kind::allreduce), Variant());
}

TEST(algorithm, one_name_is_for_all_collectives) {
  const AlgorithmChoice choice = understood("node-direct-two-shot");
  EXPECT_TRUE(choice.any());
  for (const Kind kind : {Kind::bcast, Kind::allreduce, Kind::allgatherv})
    EXPECT_EQ(choice.of(kind), named("node-direct-two-shot"));
}

TEST(algorithm, reductions_are_spread_by_name) {
  EXPECT_EQ(understood("node-direct-spread").of(Kind::reduce), (named("node-direct-spread")));
}

TEST(algorithm, one_collective_goes_before_all_wherever_it_stands) {
  for (const char* list : {"allreduce:inbox,staged", "staged,allreduce:inbox"}) {
    EXPECT_EQ(understood(list).of(Kind::allreduce).algorithm, &algorithms::inbox) << list;
    EXPECT_EQ(understood(list).of(Kind::alltoall).algorithm, &algorithms::staged) << list;
  }
  EXPECT_EQ(understood("scan:inbox").of(Kind::exscan), Variant());
  EXPECT_TRUE(understood("exscan:inbox").any());
  EXPECT_FALSE(understood("inbox,auto").any());
}

// A name for all collectives is none for messages.
TEST(algorithm, messages_go_by_what_is_said_of_them) {
  EXPECT_EQ(understood("node,nccl").of_messages(), MessageWay::automatic);
  const AlgorithmChoice choice = understood("send:copy-engine,allreduce:inbox");
  EXPECT_EQ(choice.of_messages(), MessageWay::engine);
  EXPECT_EQ(choice.of(Kind::bcast), Variant());
  EXPECT_TRUE(understood("send:copy-kernel").any());
  EXPECT_NE(understood("send:copy-kernel").hash(), understood("send:staged").hash());
  std::string problem;
  EXPECT_FALSE(AlgorithmChoice::parse("send:nccl", problem).any());
  EXPECT_NE(problem.find("staged, copy-kernel, copy-engine of"), std::string::npos) << problem;
}

TEST(algorithm, messages_between_nodes_go_by_what_is_said_of_them) {
  EXPECT_EQ(understood("node,send:staged").of_net_messages(), NetWay());
  const AlgorithmChoice choice = understood("net_send:passive,send:copy-engine");
  EXPECT_STREQ(name_of(choice.of_net_messages()), "passive");
  EXPECT_EQ(choice.of_messages(), MessageWay::engine);
  EXPECT_TRUE(understood("net_send:staged").any());
  EXPECT_NE(understood("net_send:direct").hash(), understood("net_send:passive").hash());
  EXPECT_NE(understood("net_send:staged").hash(), understood("send:staged").hash());
  std::string problem;
  EXPECT_FALSE(AlgorithmChoice::parse("net_send:nccl", problem).any());
  EXPECT_NE(problem.find("auto, staged, direct, passive"), std::string::npos) << problem;
  for (const NetWayRow& row : all_net_ways()) EXPECT_EQ(find_net_way(row.name), row.value);
}

TEST(algorithm, the_hash_is_of_what_is_chosen) {
  const auto hash = [](const char* list) { return understood(list).hash(); };
  EXPECT_EQ(hash("node,allreduce:inbox"), hash("allreduce:node,allreduce:inbox,node"));
  EXPECT_NE(hash("node"), hash("node-direct"));
  EXPECT_NE(hash("allreduce:inbox"), hash("scan:inbox"));
  EXPECT_NE(hash("node-one-shot"), hash("node-two-shot"));
}

TEST(algorithm, a_wrong_name_is_left_out_and_all_names_are_listed) {
  for (const char* wrong :
       {"inbx", "allreduc:inbox", "allreduce:", ":inbox", "allreduce:inbox:node", ""}) {
    std::string problem;
    const auto choice = AlgorithmChoice::parse(std::string("node,") + wrong, problem);
    EXPECT_EQ(choice.of(Kind::allreduce).algorithm, &algorithms::regions) << wrong;
    EXPECT_NE(problem.find(std::string("\"") + wrong + "\""), std::string::npos) << problem;
    for (const char* name :
         {"staged-pipelined", "node-direct-one-shot", "inbox", "reduce_scatter_block"})
      EXPECT_NE(problem.find(name), std::string::npos) << problem;
  }
}

// Each statement in a process of its own, since a setting is read once.
TEST(algorithm, a_wrong_setting_is_named_and_a_right_one_is_not) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ::setenv("ACCORD_ALGORITHM", "inbx", 1);
  EXPECT_EXIT(
      {
        std::fputs(algorithm_problem().c_str(), stderr);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^ACCORD_ALGORITHM: .*inbx");
  ::setenv("ACCORD_ALGORITHM", "inbox", 1);
  EXPECT_EXIT(std::exit(algorithm_problem().empty() ? 0 : 1), testing::ExitedWithCode(0), "");
  ::unsetenv("ACCORD_ALGORITHM");
}

}  // namespace
}  // namespace accord::coll
