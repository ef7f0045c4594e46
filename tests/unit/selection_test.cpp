// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which algorithm is chosen, and by whom: tables and their faults, the order in which settings,
// info, table and rule count, and the rule itself with the settings' defaults.
#include "coll/select/selection.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace accord::coll {
namespace {

using node::Kind;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = kKiB * kKiB;

std::string table_text(const std::string& choices) {
  return R"({"format": "accord-table", "schema": 1, "machine": {"runtime": "host"}, "choices": )" +
         choices + "}";
}
std::string row(const std::string& ranges) {
  return R"([{"collective": "allreduce", "ranks": 4, "ranges": [)" + ranges + "]}]";
}
const std::string kGood = table_text(
    row(R"({"first_bytes": 0, "algorithm": "inbox"}, {"first_bytes": 4096, "algorithm": "auto"},
           {"first_bytes": 65536, "algorithm": "node-direct-two-shot"})"));

std::string messages_text(const std::string& ranges, int ranks = 2) {
  return table_text(R"([{"collective": "send", "ranks": )" + std::to_string(ranks) +
                    R"(, "ranges": [)" + ranges + "]}]");
}

Table understood(const std::string& text) {
  Table table;
  const Status status = Table::parse(text, table);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}
Variant named(std::string_view name) { return find_algorithm(name).value(); }
AlgorithmChoice choice(std::string_view list) {
  std::string problem;
  return AlgorithmChoice::parse(list, problem);
}

TEST(table, a_range_begins_with_its_first_byte_and_the_last_has_no_end) {
  const Table table = understood(kGood);
  const auto at = [&](std::size_t size_bytes) {
    return table.find(Kind::allreduce, 4, size_bytes)->algorithm;
  };
  EXPECT_EQ(at(0), named("inbox"));
  EXPECT_EQ(at(4095), named("inbox"));
  EXPECT_EQ(at(4096), Variant());
  EXPECT_EQ(at(65535), Variant());
  EXPECT_EQ(at(65536), named("node-direct-two-shot"));
  EXPECT_EQ(at(SIZE_MAX), named("node-direct-two-shot"));
  EXPECT_EQ(table.runtime(), "host");
}

TEST(table, of_other_ranks_and_collectives_it_says_nothing) {
  const Table table = understood(kGood);
  EXPECT_EQ(table.find(Kind::allreduce, 3, 8), nullptr);
  EXPECT_EQ(table.find(Kind::alltoall, 4, 8), nullptr);
}

TEST(table, its_hash_tells_choices_apart_but_not_how_they_are_written) {
  const Table table = understood(kGood);
  std::string spaced = kGood;
  spaced.insert(1, "\n  \"date\": \"today\",\n");
  EXPECT_EQ(understood(spaced).hash(), table.hash());
  std::string other = kGood;
  other.replace(other.find("4096"), 4, "4097");
  EXPECT_NE(understood(other).hash(), table.hash());
  other = kGood;
  other.replace(other.find("two-shot"), 8, "one-shot");
  EXPECT_NE(understood(other).hash(), table.hash());
  EXPECT_NE(Table().hash(), table.hash());
}

struct Fault {
  std::string text;
  const char* said;
};

TEST(table, a_message_is_a_line_whatever_the_file_holds) {
  const std::string deep(200000, '[');
  const std::string long_name(100000, 'x');
  for (const std::string& text :
       {R"({"format": "accord-table", "schema": )" + deep + std::string(deep.size(), ']') + "}",
        table_text(R"([{"collective": ")" + long_name + "\"}]"),
        table_text(row(R"({"first_bytes": 0, "algorithm": ")" + long_name + "\"}"))}) {
    Table table;
    const Status status = Table::parse(text, table);
    EXPECT_FALSE(status.ok());
    EXPECT_LT(status.message().size(), 200U) << status.message().substr(0, 200);
  }
}

TEST(table, what_is_wrong_is_said_and_nothing_is_kept) {
  const std::vector<Fault> faults = {
      {"", "no JSON"},
      {kGood.substr(0, kGood.size() / 2), "cut off"},
      {"[]", "no table of accord tune"},
      {R"({"schema": 1, "choices": []})", "no table of accord tune"},
      {R"({"format": "accord-table", "choices": []})", "schema is unknown"},
      {R"({"format": "accord-table", "schema": 2})", "schema is 2, and this Accord reads 1"},
      {R"({"format": "accord-table", "schema": "one"})", "schema is unknown"},
      {R"({"format": "accord-table", "schema": 1, "choices": []})", "on which machine"},
      {R"({"format": "accord-table", "schema": 1, "machine": {"runtime": "host"}})", "no choices"},
      {table_text("{}"), "no choices"},
      {table_text("[7]"), "is no collective"},
      {table_text(R"([{"collective": "allredcue", "ranks": 4}])"), "\"allredcue\" is no coll"},
      {table_text(R"([{"collective": "allreduce", "ranges": []}])"), "number of ranks"},
      {table_text(R"([{"collective": "allreduce", "ranks": -4}])"), "number of ranks"},
      {table_text(R"([{"collective": "allreduce", "ranks": 99999999999}])"), "number of ranks"},
      {table_text(row("")), "allreduce among 4 without ranges"},
      {table_text(row(R"({"first_bytes": 0, "algorithm": "inbx"})")), "\"inbx\" is no algorithm"},
      {table_text(row(R"({"first_bytes": 0})")), "is no algorithm"},
      {table_text(row(R"({"algorithm": "inbox"})")), "lacks first_bytes"},
      {table_text(row(R"({"first_bytes": 1.5, "algorithm": "inbox"})")), "lacks first_bytes"},
      {table_text(row(R"({"first_bytes": 8, "algorithm": "inbox"})")), "do not follow one another"},
      {table_text(row(R"({"first_bytes": 0, "algorithm": "inbox"},
                         {"first_bytes": 0, "algorithm": "node"})")),
       "do not follow one another"},
      {table_text(R"([{"collective": "scan", "ranks": 2,
                       "ranges": [{"first_bytes": 0, "algorithm": "node"}]},
                      {"collective": "scan", "ranks": 2,
                       "ranges": [{"first_bytes": 0, "algorithm": "node"}]}])"),
       "scan among 2 stands there twice"},
      {messages_text(R"({"first_bytes": 0, "algorithm": "inbox"})"), "\"inbox\" is no algorithm"},
      {messages_text(""), "send among 2 without ranges"},
      {messages_text(R"({"first_bytes": 0, "algorithm": "staged"})", 3), "a message has two ranks"},
      {table_text(R"([{"collective": "send", "ranks": 2,
                       "ranges": [{"first_bytes": 0, "algorithm": "staged"}]},
                      {"collective": "send", "ranks": 2,
                       "ranges": [{"first_bytes": 0, "algorithm": "staged"}]}])"),
       "send among 2 stands there twice"},
  };
  for (const auto& [text, said] : faults) {
    Table table = understood(kGood);
    const Status status = Table::parse(text, table);
    EXPECT_NE(status.message().find(said), std::string::npos) << text << ": " << status.message();
    EXPECT_TRUE(table.empty()) << text;
  }
}

TEST(table, a_file_that_cannot_be_read_is_no_table) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  Table table;
  const Status missing = Table::read(folder / "no_such_table.json", table);
  EXPECT_NE(missing.message().find("No such file"), std::string::npos) << missing.message();
  EXPECT_FALSE(Table::read(folder, table).ok());
  const auto file = folder / "accord_selection_test.json";
  std::ofstream(file) << kGood;
  EXPECT_TRUE(Table::read(file, table).ok());
  EXPECT_EQ(table.hash(), understood(kGood).hash());
  std::filesystem::remove(file);
}

TEST(selection, setting_then_info_then_table_then_rule) {
  const Table table = understood(kGood);
  const AlgorithmChoice setting = choice("allreduce:staged");
  const AlgorithmChoice info = choice("node");
  const auto asked = [&](const Sources& sources, Kind kind = Kind::allreduce) {
    return asked_for(sources, kind, 4, 8);
  };
  EXPECT_EQ(asked({&setting, &info, &table}).variant.algorithm, &algorithms::staged);
  EXPECT_EQ(asked({&setting, &info, &table}).origin, Origin::setting);
  EXPECT_EQ(asked({nullptr, &info, &table}).variant.algorithm, &algorithms::regions);
  EXPECT_EQ(asked({nullptr, &info, &table}).origin, Origin::info);
  EXPECT_EQ(asked({nullptr, nullptr, &table}).variant.algorithm, &algorithms::inbox);
  EXPECT_EQ(asked({nullptr, nullptr, &table}).origin, Origin::table);
  EXPECT_EQ(asked({}).origin, Origin::rule);
  // Who asks for nothing, of this collective or at all, leaves it to the next.
  EXPECT_EQ(asked({&setting, &info, &table}, Kind::scan).origin, Origin::info);
  const AlgorithmChoice nothing = choice("auto");
  EXPECT_EQ(asked({&nothing, &nothing, &table}).origin, Origin::table);
  EXPECT_EQ(asked_for({nullptr, nullptr, &table}, Kind::allreduce, 4, 5000).origin, Origin::rule);
}

// ACCORD_P2P_BYTES is 8 bytes, ACCORD_NODE_BYTES 16 KiB, ACCORD_COPY_KERNEL_BYTES 256 KiB.
TEST(selection, messages_have_a_rule_and_tables_of_their_own) {
  const auto by = [](std::size_t size_bytes, MessageWay way = MessageWay::automatic) {
    return std::string(name_of(outcome(size_bytes, AskedMessage{way, Origin::setting})));
  };
  EXPECT_EQ(by(7), "staged");
  EXPECT_EQ(by(8), "copy-kernel");
  EXPECT_EQ(by(2 * kMiB), "copy-kernel");
  EXPECT_EQ(by(2 * kMiB + 1), "copy-engine");
  EXPECT_EQ(by(7, MessageWay::engine), "staged");
  EXPECT_EQ(by(8, MessageWay::engine), "copy-engine");
  EXPECT_EQ(by(4 * kMiB, MessageWay::kernel), "copy-engine");
  EXPECT_EQ(by(kMiB, MessageWay::staged), "staged");

  const Table table = understood(messages_text(
      R"({"first_bytes": 0, "algorithm": "auto"}, {"first_bytes": 4096, "algorithm": "staged"})"));
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.find_message(4095)->algorithm, MessageWay::automatic);
  EXPECT_EQ(table.find_message(4096)->algorithm, MessageWay::staged);
  EXPECT_NE(table.hash(), Table().hash());
  EXPECT_NE(table.hash(),
            understood(messages_text(R"({"first_bytes": 0, "algorithm": "auto"})")).hash());
  EXPECT_NE(understood(messages_text(R"({"first_bytes": 0, "algorithm": "staged"})")).hash(),
            understood(messages_text(R"({"first_bytes": 0, "algorithm": "auto"})")).hash());
  EXPECT_EQ(understood(kGood).find_message(4096), nullptr);
  const AlgorithmChoice setting = choice("send:staged");
  const AlgorithmChoice info = choice("send:copy-engine");
  const AlgorithmChoice other = choice("nccl");
  EXPECT_EQ(asked_for_message({&setting, &info, &table}, 5000).origin, Origin::setting);
  EXPECT_EQ(asked_for_message({&other, &info, &table}, 5000).way, MessageWay::engine);
  EXPECT_EQ(asked_for_message({&other, &other, &table}, 5000).origin, Origin::table);
  EXPECT_EQ(asked_for_message({&other, nullptr, &table}, 5).origin, Origin::rule);
}

// ACCORD_NET_DESIGN is table, ACCORD_NET_BYTES 64 KiB; net_selection_test has others.
TEST(selection, messages_between_nodes_are_staged_unless_somebody_says_more) {
  const auto by = [](std::size_t size_bytes, const char* name, Origin origin, NetFacts facts = {}) {
    const NetWay way = find_net_way(name).value();
    return std::string(name_of(outcome(size_bytes, AskedNetMessage{way, origin}, facts)));
  };
  EXPECT_EQ(by(kMiB, "auto", Origin::rule), "staged");
  EXPECT_EQ(by(kMiB, "direct", Origin::table), "direct");
  EXPECT_EQ(by(32, "direct", Origin::info), "direct");
  EXPECT_EQ(by(31, "direct", Origin::info), "staged");
  EXPECT_EQ(by(kMiB, "staged", Origin::setting), "staged");
  // A proxy that has no core is left to those who ask for it.
  const NetFacts busy{.has_idle_core = false};
  EXPECT_EQ(by(kMiB, "active1", Origin::table), "active1");
  EXPECT_EQ(by(kMiB, "active1", Origin::table, busy), "passive");
  EXPECT_EQ(by(kMiB, "active1", Origin::setting, busy), "active1");
  EXPECT_EQ(by(kMiB, "active1", Origin::info, busy), "active1");
  EXPECT_EQ(by(kMiB, "direct", Origin::table, busy), "direct");
}

TEST(selection, messages_between_nodes_have_rows_of_their_own) {
  const auto text = [](const std::string& ranges, const std::string& more = "") {
    return table_text(R"([{"collective": "net_send", "ranks": 2, "ranges": [)" + ranges + "]}" +
                      more + "]");
  };
  const std::string ranges =
      R"({"first_bytes": 0, "algorithm": "staged"}, {"first_bytes": 4096, "algorithm": "direct"})";
  const Table table = understood(text(ranges));
  const auto name = [&](std::size_t size_bytes) {
    return std::string(name_of(table.find_net_message(size_bytes)->algorithm));
  };
  EXPECT_FALSE(table.empty());
  EXPECT_TRUE(table.has_design());
  EXPECT_EQ(name(4095), "staged");
  EXPECT_EQ(name(4096), "direct");
  EXPECT_EQ(table.find_message(4096), nullptr);
  EXPECT_EQ(understood(kGood).find_net_message(4096), nullptr);
  const Table staged = understood(text(R"({"first_bytes": 0, "algorithm": "staged"})"));
  EXPECT_FALSE(staged.has_design());
  EXPECT_NE(table.hash(), staged.hash());
  EXPECT_NE(staged.hash(),
            understood(messages_text(R"({"first_bytes": 0, "algorithm": "staged"})")).hash());
  Table none;
  EXPECT_FALSE(Table::parse(text(R"({"first_bytes": 0, "algorithm": "copy-engine"})"), none).ok());
  EXPECT_FALSE(Table::parse(text(ranges, "," + text(ranges)), none).ok());

  const AlgorithmChoice setting = choice("net_send:passive");
  const AlgorithmChoice info = choice("net_send:active1");
  const AlgorithmChoice other = choice("staged,send:staged");
  const auto origin = [](const Sources& sources) {
    return asked_for_net_message(sources, 5000).origin;
  };
  EXPECT_EQ(origin({&setting, &info, &table}), Origin::setting);
  EXPECT_EQ(origin({&other, &info, &table}), Origin::info);
  EXPECT_EQ(origin({&other, &other, &table}), Origin::table);
  EXPECT_EQ(origin({&other, nullptr, nullptr}), Origin::rule);
  EXPECT_TRUE(may_go_by_design({&setting, nullptr, nullptr}));
  EXPECT_TRUE(may_go_by_design({&other, nullptr, &table}));
  EXPECT_FALSE(may_go_by_design({&other, nullptr, &staged}));
}

TEST(selection, no_table_chooses_for_calls_without_a_common_size) {
  const Table table = understood(table_text(
      R"([{"collective": "alltoallv", "ranks": 4,
           "ranges": [{"first_bytes": 0, "algorithm": "staged"}]}])"));
  EXPECT_EQ(asked_for({nullptr, nullptr, &table}, Kind::alltoallv, 4, 8).origin, Origin::rule);
}

std::string by_rule(Kind kind, int ranks, std::size_t size_bytes) {
  const bool cut = kind == Kind::bcast || kind == Kind::allreduce || kind == Kind::reduce;
  return name_of(outcome({.kind = kind,
                          .ranks = ranks,
                          .size_bytes = size_bytes,
                          .longest_bytes = size_bytes,
                          .can_be_cut = cut},
                         {}));
}

// ACCORD_INBOX_BYTES is 1536 KiB among all others, ACCORD_NODE_BYTES and ACCORD_DIRECT_BYTES 16
// KiB, ACCORD_ONE_SHOT_BYTES 4 MiB of two.
TEST(selection, the_rule_goes_by_size_and_ranks) {
  EXPECT_EQ(by_rule(Kind::allreduce, 2, 8), "inbox");
  EXPECT_EQ(by_rule(Kind::allreduce, 2, 1536 * kKiB), "packets");
  EXPECT_EQ(by_rule(Kind::allreduce, 4, 512 * kKiB), "packets");
  EXPECT_EQ(by_rule(Kind::allreduce, 4, 512 * kKiB + 16), "node-direct-two-shot");
  EXPECT_EQ(by_rule(Kind::allreduce, 2, 4 * kMiB), "node-direct-one-shot");
  EXPECT_EQ(by_rule(Kind::allreduce, 2, 4 * kMiB + 4), "node-direct-two-shot");
  EXPECT_EQ(by_rule(Kind::alltoall, 2, 64 * kMiB), "node-direct");
  // More ranks than inboxes are for: short ones go through the host.
  EXPECT_EQ(by_rule(Kind::alltoall, 65, 8), "staged");
  EXPECT_EQ(by_rule(Kind::alltoall, 65, 16 * kKiB - 1), "staged");
  EXPECT_EQ(by_rule(Kind::alltoall, 65, 16 * kKiB), "node-direct");
  EXPECT_EQ(by_rule(Kind::alltoallv, 2, 8), "inbox");
  EXPECT_EQ(by_rule(Kind::alltoallv, 2, 1536 * kKiB + 16), "node-direct");
  EXPECT_EQ(by_rule(Kind::alltoallv, 65, 8), "staged");
}

TEST(selection, what_cannot_be_as_asked_goes_by_the_rule) {
  const Question large{.kind = Kind::allreduce,
                       .ranks = 4,
                       .size_bytes = 64 * kMiB,
                       .longest_bytes = 64 * kMiB,
                       .can_be_cut = true};
  const auto forced = [&](Variant variant) {
    return std::string(name_of(outcome(large, {variant, Origin::setting})));
  };
  EXPECT_EQ(forced(named("inbox")), "node-direct-spread");
  EXPECT_EQ(forced(named("node")), "node-two-shot");
  EXPECT_EQ(forced(named("node-one-shot")), "node-one-shot");
  EXPECT_EQ(forced(named("staged")), "staged");
  EXPECT_EQ(forced(named("staged-pipelined")), "staged-pipelined");
  const Question whole{.kind = Kind::alltoall, .ranks = 4, .size_bytes = 8, .longest_bytes = 8};
  EXPECT_EQ(outcome(whole, {named("staged-pipelined"), Origin::setting}), named("inbox"));
}

// ACCORD_TWO_LEVEL_BYTES is 256 KiB.
TEST(selection, across_nodes_long_calls_go_in_two_levels) {
  const auto across = [](Kind kind, std::size_t size_bytes, Variant variant = {}) {
    const Question question{.kind = kind,
                            .ranks = 4,
                            .size_bytes = size_bytes,
                            .longest_bytes = size_bytes,
                            .can_be_cut = can_be_cut(kind)};
    return std::string(name_of(outcome(question, {variant, Origin::setting}, {.one_node = false})));
  };
  EXPECT_EQ(across(Kind::allreduce, 256 * kKiB), "two-level");
  EXPECT_EQ(across(Kind::allreduce, 256 * kKiB - 4), "staged");
  EXPECT_EQ(across(Kind::alltoall, 64 * kMiB), "two-level");
  EXPECT_EQ(across(Kind::scan, 64 * kMiB), "two-level");
  EXPECT_EQ(across(Kind::alltoallv, 64 * kMiB, named("two-level")), "two-level");
  EXPECT_EQ(across(Kind::alltoallv, 64 * kMiB, named("two-level-single-leader")), "two-level");
  EXPECT_EQ(across(Kind::gatherv, 64 * kMiB), "two-level");
  EXPECT_EQ(across(Kind::alltoallv, 8), "staged");
  EXPECT_EQ(across(Kind::allreduce, 8, named("two-level")), "two-level");
  EXPECT_EQ(across(Kind::bcast, 8, named("two-level-single-leader")), "two-level-single-leader");
  // Who asks for another way gets that, or the host MPI's.
  EXPECT_EQ(across(Kind::allreduce, 64 * kMiB, named("staged")), "staged");
  EXPECT_EQ(across(Kind::allreduce, 64 * kMiB, named("staged-pipelined")), "staged-pipelined");
  EXPECT_EQ(across(Kind::allreduce, 64 * kMiB, named("node")), "staged-pipelined");
  // Inboxes are of one node, libraries of several.
  EXPECT_EQ(across(Kind::allreduce, 64 * kMiB, named("inbox")), "two-level");
  ccl::Library* const library = ccl::find("nccl");
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(across(Kind::allreduce, 8, named("nccl")), "nccl");
  EXPECT_EQ(across(Kind::alltoallv, 64 * kMiB, named("nccl")), "nccl");
  // Within a node it is the regions.
  const Question small{.kind = Kind::allreduce, .ranks = 4, .size_bytes = 8, .longest_bytes = 8};
  EXPECT_EQ(outcome(small, {named("two-level"), Origin::setting}).algorithm, &algorithms::regions);
}

// An eighth of ACCORD_BUNDLED_PAIR_BYTES is 512 bytes. Whether it pays is known once the ranks are
// placed.
TEST(selection, across_nodes_short_blocks_of_an_alltoall_may_travel_together) {
  const auto ways = [](Kind kind, std::size_t size_bytes, int ranks = 16, Variant asked = {}) {
    return device_ways(
        {.kind = kind, .ranks = ranks, .size_bytes = size_bytes, .longest_bytes = size_bytes},
        {asked, Origin::setting});
  };
  for (const int ranks : {16, 1000}) {  // more than inboxes are for
    EXPECT_TRUE(ways(Kind::alltoall, 512, ranks).any());
    EXPECT_TRUE(ways(Kind::alltoall, 512, ranks).only_bundled);
    EXPECT_NE(ways(Kind::alltoall, 512, ranks).leaders_max, 0);
    EXPECT_EQ(ways(Kind::alltoall, 513, ranks).leaders_max, 0);
  }
  EXPECT_EQ(ways(Kind::allgather, 8).leaders_max, 0);
  EXPECT_EQ(ways(Kind::alltoall, 8, 16, named("staged")).leaders_max, 0);
  EXPECT_EQ(ways(Kind::alltoall, 8, 16, named("node")).leaders_max, 0);
  EXPECT_FALSE(ways(Kind::alltoall, 8, 16, named("two-level")).only_bundled);
  EXPECT_FALSE(ways(Kind::alltoall, 64 * kKiB).only_bundled);
  EXPECT_NE(ways(Kind::alltoall, 64 * kKiB).leaders_max, 0);
  EXPECT_EQ(ways(Kind::alltoall, 64 * kKiB - 1).leaders_max, 0);
}

TEST(selection, only_who_asks_for_two_levels_gets_them_in_short_messages) {
  const Question long_one{
      .kind = Kind::allreduce, .ranks = 64, .size_bytes = 256 * kKiB, .longest_bytes = 256 * kKiB};
  EXPECT_EQ(device_ways(long_one, {}).message_bytes_min, 16 * kKiB);
  EXPECT_EQ(device_ways(long_one, {named("inbox"), Origin::setting}).message_bytes_min, 16 * kKiB);
  EXPECT_EQ(device_ways(long_one, {named("two-level"), Origin::table}).message_bytes_min, 0U);
  EXPECT_EQ(
      device_ways(long_one, {named("two-level-single-leader"), Origin::info}).message_bytes_min,
      0U);
}

TEST(selection, inboxes_are_made_at_once_only_where_somebody_insists) {
  const Question small{.kind = Kind::allreduce, .ranks = 2, .size_bytes = 8, .longest_bytes = 8};
  EXPECT_EQ(device_ways(small, {named("inbox"), Origin::setting}).inbox_calls, 1U);
  EXPECT_EQ(device_ways(small, {named("inbox"), Origin::info}).inbox_calls, 1U);
  EXPECT_EQ(device_ways(small, {named("inbox"), Origin::table}).inbox_calls, 16U);
  EXPECT_EQ(device_ways(small, {}).inbox_calls, 16U);
}

TEST(selection, among_neighbours_as_any_call_pair_by_pair) {
  const Question question{.kind = Kind::neighbor_alltoallv, .ranks = 4, .longest_bytes = 1 << 20};
  Question like = question;
  like.kind = Kind::alltoallv;
  for (const char* name : {"auto", "node", "node-direct", "inbox"}) {
    const Asked asked{named(name), Origin::setting};
    EXPECT_TRUE(device_ways(question, asked).any());
    EXPECT_EQ(outcome(question, asked), outcome(like, asked));
    EXPECT_NE(outcome(question, asked), named("staged"));
  }
  const Variant by_library = named("nccl");
  const DeviceWays ways = device_ways(question, {by_library, Origin::setting});
  EXPECT_EQ(ways.library, by_library.library);
  EXPECT_EQ(outcome(question, {by_library, Origin::setting}), by_library);
}

// A bcast has all, a scan no chunks, and collectives of neighbours neither inboxes nor regions.
TEST(selection, no_call_takes_an_algorithm_that_does_not_have_it) {
  for (const char* collective : all_collectives()) {
    const Kind kind = find_collective(collective).value();
    for (const AlgorithmRow& row : all_algorithms()) {
      for (const std::size_t size_bytes : {8 * std::size_t{1}, 64 * kKiB, 64 * kMiB}) {
        for (const Reach reach : {Reach{}, Reach{.one_node = false}}) {
          const Question question{.kind = kind,
                                  .ranks = 4,
                                  .size_bytes = size_bytes,
                                  .longest_bytes = size_bytes,
                                  .can_be_cut = can_be_cut(kind)};
          const Variant variant = outcome(question, {row.value, Origin::setting}, reach);
          EXPECT_TRUE(variant.algorithm->has(kind)) << collective << ' ' << row.name;
          // What cannot be as asked goes by the rule.
          const bool may = row.value.algorithm == nullptr || row.value.algorithm->has(kind);
          const Variant expected = may ? variant : outcome(question, {}, reach);
          EXPECT_EQ(variant, expected) << collective << ' ' << row.name;
        }
      }
    }
  }
}

// Where ranks take turns on a device nothing waits there for a peer, and a turn takes longer than
// the way through host memory of what is short.
TEST(selection, short_calls_go_through_host_memory_where_ranks_take_turns) {
  const Reach turns{.in_turns = true};
  for (const Kind kind : {Kind::allreduce, Kind::alltoall, Kind::allgather, Kind::bcast}) {
    Question question{.kind = kind, .ranks = 4};
    for (const std::size_t size_bytes : {std::size_t{8}, 64 * kKiB}) {
      question.size_bytes = question.longest_bytes = size_bytes;
      EXPECT_STREQ("node-host", name_of(outcome(question, {}, turns)));
      EXPECT_STREQ("inbox", name_of(outcome(question, {})));
      EXPECT_TRUE(
          outcome(question, {named("node"), Origin::setting}, turns).is(algorithms::regions));
    }
    question.size_bytes = question.longest_bytes = 8 * kMiB;
    EXPECT_TRUE(outcome(question, {}, turns).is(algorithms::regions));
  }
}

// It is what a rank copies to the host and from there that decides.
TEST(selection, the_way_through_host_memory_is_for_calls_in_which_a_rank_copies_little) {
  const Reach turns{.in_turns = true};
  const auto goes_by = [&](Kind kind, std::size_t size_bytes) {
    const Question question{
        .kind = kind, .ranks = 4, .size_bytes = size_bytes, .longest_bytes = size_bytes};
    return outcome(question, {}, turns).algorithm;
  };
  for (const Kind kind : {Kind::bcast, Kind::allgather})
    EXPECT_EQ(goes_by(kind, kMiB), &algorithms::host_regions);
  for (const Kind kind : {Kind::alltoall, Kind::allreduce, Kind::gather})
    EXPECT_EQ(goes_by(kind, kMiB), &algorithms::regions);
  EXPECT_EQ(goes_by(Kind::allreduce, kMiB / 2), &algorithms::host_regions);
  EXPECT_EQ(goes_by(Kind::gather, kMiB / 4), &algorithms::host_regions);
}

// By the rule from ACCORD_PACKET_BYTES on, and for who asks; where devices have none, words.
TEST(selection, packets_are_for_long_blocks_and_who_asks) {
  const Question question{.kind = Kind::allreduce,
                          .ranks = 2,
                          .size_bytes = 256 * kKiB,
                          .longest_bytes = 256 * kKiB,
                          .element_bytes = 4};
  EXPECT_EQ(outcome(question, {}), named("inbox"));
  EXPECT_EQ(outcome(question, {named("inbox"), Origin::setting}), named("inbox"));
  EXPECT_EQ(outcome(question, {named("packets"), Origin::setting}), named("packets"));
  const DeviceWays ways = device_ways(question, {named("packets"), Origin::setting});
  EXPECT_EQ(ways.inbox_calls, 1U);
  Situation without{.kind = Kind::allreduce, .offered = ways.offered, .inboxes = true};
  EXPECT_EQ(&select(without), &algorithms::inbox);
  Question long_one = question;
  long_one.size_bytes = long_one.longest_bytes = 512 * kKiB;
  EXPECT_EQ(outcome(long_one, {}), named("packets"));
  EXPECT_EQ(outcome(long_one, {}, {.packets = false}), named("inbox"));
  EXPECT_EQ(outcome(long_one, {named("inbox"), Origin::setting}), named("inbox"));
  long_one.size_bytes = long_one.longest_bytes = 64 * kMiB;
  EXPECT_EQ(outcome(long_one, {named("packets"), Origin::setting}), outcome(long_one, {}));
}

// Whatever the ranks share: only what was offered is taken, and the host MPI takes the rest.
TEST(selection, only_what_was_offered_is_taken) {
  Situation everything{.kind = Kind::bcast,
                       .library = true,
                       .inboxes = true,
                       .packets = true,
                       .host_regions = true,
                       .regions = true,
                       .two_levels = true,
                       .chunks = true};
  EXPECT_EQ(&select(everything), &algorithms::library);
  for (const Algorithm* algorithm : all_of_registry()) {
    if (algorithm->by_host) break;
    EXPECT_EQ(&select(everything), algorithm);
    everything.offered &= everything.offered - 1;
  }
  EXPECT_EQ(&select(everything), &algorithms::chunks);
  everything.kind = Kind::scan;
  EXPECT_EQ(&select(everything), &algorithms::staged);
}

TEST(selection, every_algorithm_has_a_name_of_its_own) {
  for (const AlgorithmRow& one : all_algorithms()) {
    EXPECT_EQ(find_algorithm(one.name), one.value);
    EXPECT_STREQ(name_of(one.value), one.name);
  }
  for (const char* const name : all_collectives())
    EXPECT_STREQ(name_of(*find_collective(name)), name);
}

}  // namespace
}  // namespace accord::coll
