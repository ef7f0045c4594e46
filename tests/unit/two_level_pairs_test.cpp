// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two-level collectives in which every pair of ranks has a size of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "two_level_world.h"

namespace accord::test {
namespace {

TEST(two_level_pairs, in_place_nothing_is_overwritten_before_it_is_sent) {
  unsigned seed = 100;
  for (const auto& placement :
       {std::vector<std::uint64_t>{1, 2}, {1, 1, 2, 2}, {1, 2, 3, 2, 1}, {1, 2, 3, 4, 5, 6}}) {
    for (const std::size_t block_bytes : {700u, 6000u, 20000u}) {
      Nodes nodes(placement, Kind::alltoallv, block_bytes, ++seed);
      nodes.in_place().run(3);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Long ones, of which few pieces are under way at a time.
TEST(two_level_pairs, may_have_another_size_in_each_direction) {
  unsigned seed = 200;
  for (const auto& placement :
       {std::vector<std::uint64_t>{1, 2}, {1, 1, 2, 2}, {1, 2, 3, 2, 1}, {1, 2, 3, 4, 5, 6, 7}}) {
    for (const std::size_t parcel_bytes : {1000u, 3000u}) {
      for (int round = 0; round < 10; ++round) {
        Nodes nodes(placement, Kind::alltoallv, 20000, ++seed);
        nodes.parcels_of(parcel_bytes).lopsided().run(3);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Else a network might carry them one after the other.
TEST(two_level_pairs, both_directions_go_side_by_side) {
  constexpr std::size_t kParcel = 1000;
  Nodes nodes({1, 2}, Kind::alltoallv, 60000, 9);
  const std::size_t sent_bytes = nodes.dense().parcels_of(kParcel).run_while_held(1);
  EXPECT_GE(sent_bytes, kParcel);
  EXPECT_LE(sent_bytes, 4 * kParcel);
}

// Several pieces of each, from the users' memory on devices into the users' memory; in place by way
// of parcels, as what is in no one run.
TEST(two_level_pairs, long_ones_are_offered_from_device_to_device) {
  unsigned seed = 300;
  for (const auto& placement :
       {std::vector<std::uint64_t>{1, 2}, {1, 1, 2, 2}, {1, 2, 3, 2, 1}, {1, 2, 3, 4, 5, 6}}) {
    for (const Kind kind : {Kind::alltoallv, Kind::gatherv, Kind::scatterv}) {
      for (const std::size_t block_bytes : {2400u, 20000u, 200000u}) {
        Nodes nodes(placement, kind, block_bytes, ++seed);
        nodes.by_transport().lopsided().run(3);
        EXPECT_EQ(nodes.offers().posted() != 0, block_bytes > 3000);
        EXPECT_EQ(nodes.offers().posted(), nodes.offers().posted_on_devices());
        if (kind != Kind::alltoallv) continue;
        Nodes in_place(placement, kind, block_bytes, ++seed);
        in_place.by_transport().in_place().run(3);
        EXPECT_EQ(in_place.offers().posted_on_devices(), 0u);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// By rule: each pair for itself, since no rank knows of the others.
TEST(two_level_pairs, adapters_at_half_the_rate_read_those_that_are_not_too_long) {
  constexpr std::size_t kEndBytes = 256 << 10;
  for (const std::size_t pair_bytes : {kEndBytes - 1, kEndBytes}) {
    Nodes nodes({1, 2}, Kind::alltoallv, 3 * pair_bytes, 5);
    nodes.by_rule_with(device::AdapterReach::half).run(1);
    EXPECT_EQ(nodes.offers().posted() != 0, pair_bytes < kEndBytes);
  }
}

TEST(two_level_pairs, an_offered_pair_of_another_size_is_an_error_of_its_receiver_alone) {
  for (const std::size_t size_bytes : {1u, 2000u, 19000u, 50000u}) {
    Nodes nodes({1, 1, 2, 2}, Kind::alltoallv, 60000, static_cast<unsigned>(size_bytes));
    nodes.by_transport().run_with_a_mistake(0, 3, size_bytes);
    if (testing::Test::HasFailure()) return;
  }
  const std::vector<std::uint64_t> placement{1, 1, 2, 2, 2};  // nothing is expected by 4 from 0
  Nodes none_expected(placement, Kind::alltoallv, 60000, 3);
  none_expected.by_transport().run_with_a_mistake(0, 4, 20000);
  Nodes none_sent(placement, Kind::alltoallv, 60000, 4);
  none_sent.by_transport().run_with_a_mistake(1, 2, 0);
}

// Neither with something on offer, nor with something that is being fetched.
TEST(two_level_pairs, one_rank_that_stops_among_offers_leaves_nobody_waiting) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Nodes nodes(placement, Kind::alltoallv, seed % 4 < 2 ? 60000 : 20000, seed);
    if (seed % 2 == 0) nodes.in_place();
    if (seed % 5 == 0) nodes.with_a_mistake(0, 1, 19000);
    if (seed % 3 == 0) nodes.by_transport_or_not();
    nodes.by_transport().dense().run_until_all_stop(static_cast<int>(seed % placement.size()),
                                                    seed / 2 * 3, errors, 3);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(errors, 80);
}

// Of short pairs, one to pack all that a rank sends and one to unpack all that it receives: within
// its node, too, where its ranks share a device.
TEST(two_level_pairs, short_ones_are_copied_together) {
  const std::vector<std::uint64_t> placement{1, 1, 2, 2, 3, 3};
  Nodes nodes(placement, Kind::alltoallv, 700, 7);
  const coll::FarPairs::Counters before = coll::FarPairs::counters();
  nodes.dense().run(1);
  const coll::FarPairs::Counters after = coll::FarPairs::counters();
  EXPECT_EQ(after.copies - before.copies, 2 * placement.size());
}

// However many ranks a node has, one in either direction between any two, though these may have
// long pairs beside; or between the root's and each other one.
TEST(two_level_pairs, the_shortest_go_from_node_to_node_in_one_message) {
  const std::vector<std::uint64_t> placement{1, 1, 1, 2, 2, 2, 3, 3, 2};
  Nodes everybody(placement, Kind::alltoallv, 700, 7);
  everybody.dense().run(1);
  EXPECT_EQ(everybody.far_messages(), 3u * 2u);
  for (const Kind kind : {Kind::gatherv, Kind::scatterv}) {
    Nodes root(placement, kind, 700, 7);
    root.dense().run(1);
    EXPECT_EQ(root.far_messages(), 2u);
  }
}

// Together, as single messages, and in pieces.
TEST(two_level_pairs, may_all_have_one_size) {
  unsigned seed = 400;
  for (const auto& placement : {std::vector<std::uint64_t>{1, 2},
                                {1, 1, 2, 2},
                                {1, 2, 3, 2, 1},
                                {1, 1, 1, 2, 2, 2, 3, 3}}) {
    for (const std::size_t block_bytes : {1u, 500u, 2900u, 20000u, 60000u}) {
      for (const bool in_place : {false, true}) {
        Nodes nodes(placement, Kind::alltoall, block_bytes, ++seed);
        if (seed % 3 == 0) nodes.parcels_of(50000);
        if (in_place) nodes.in_place();
        nodes.pair_by_pair().run(3);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Short ones in one message from node to node, and in one copy with those within the node.
TEST(two_level_pairs, short_ones_of_one_size_travel_together) {
  const std::vector<std::uint64_t> placement{1, 1, 1, 2, 2, 2, 3, 3, 2};
  Nodes together(placement, Kind::alltoall, 500, 7);
  const coll::FarPairs::Counters before = coll::FarPairs::counters();
  together.pair_by_pair().run(1);
  const coll::FarPairs::Counters after = coll::FarPairs::counters();
  EXPECT_EQ(together.far_messages(), 3u * 2u);
  EXPECT_EQ(after.copies - before.copies, 2 * placement.size());
  Nodes apart(placement, Kind::alltoall, 600, 7);
  apart.pair_by_pair().run(1);
  EXPECT_EQ(apart.far_messages(), 9u * 9u - 3u * 3u - 4u * 4u - 2u * 2u);
}

// Each rank with itself, too, where ranks of its node share a device: what is copied together, and
// nothing else, however long their turns are.
TEST(two_level_pairs, within_a_node_go_by_messages_where_that_saves_copies) {
  const bool share = std::getenv("ACCORD_TEST_EXCLUSIVE_DEVICE") != nullptr;
  for (const std::size_t block_bytes : {60000u, 200000u}) {
    Nodes nodes({1, 1, 2, 2}, Kind::alltoall, block_bytes, 7);
    nodes.pair_by_pair().parcels_of(1 << 20).run(1);
    EXPECT_EQ(nodes.messages(), share && block_bytes == 60000 ? 16u : 8u);
    EXPECT_EQ(nodes.far_messages(), 8u);
  }
}

// Nobody has to be told how much comes.
TEST(two_level_pairs, long_ones_of_one_size_go_in_whole_parcels) {
  constexpr std::size_t kBlock = 300000;
  const std::vector<std::uint64_t> placement{1, 2, 3};
  for (const Kind kind : {Kind::alltoall, Kind::alltoallv}) {
    Nodes nodes(placement, kind, kBlock, 7);
    nodes.pair_by_pair().parcels_of(kBlock);
    if (kind == Kind::alltoallv) nodes.whole();
    nodes.run(1);
    EXPECT_EQ(nodes.far_messages(), kind == Kind::alltoall ? 6u : 12u);
  }
}

// More than go together at a time, each with a node of its own.
TEST(two_level_pairs, of_any_number_end) {
  std::vector<std::uint64_t> placement(132);
  std::iota(placement.begin(), placement.end(), 1u);
  Nodes(placement, Kind::alltoallv, 60, 8).in_place().dense().run(1);
}

// Long ones, of which a rank has as many as there are others: to begin a piece takes a few looks at
// pairs, however many these are.
TEST(two_level_pairs, of_many_the_next_is_found_at_once) {
  std::vector<std::uint64_t> placement(64);
  std::iota(placement.begin(), placement.end(), 1u);
  const coll::FarPairs::Counters before = coll::FarPairs::counters();
  Nodes(placement, Kind::alltoallv, 600, 9).parcels_of(500).dense().run(1);
  const coll::FarPairs::Counters after = coll::FarPairs::counters();
  EXPECT_LE(after.looks - before.looks, 8 * (after.tries - before.tries));
}

// Shorter, longer, and longer by more than a chunk; nothing is left for the next call.
TEST(two_level_pairs, a_pair_of_different_sizes_is_an_error_of_its_receiver_alone) {
  for (const std::size_t size_bytes : {1u, 2000u, 19000u}) {
    Nodes nodes({1, 1, 2, 2}, Kind::alltoallv, 20000, static_cast<unsigned>(size_bytes));
    nodes.run_with_a_mistake(0, 3, size_bytes);
    if (testing::Test::HasFailure()) return;
  }
  // Of pairs that go together, too.
  for (const std::size_t size_bytes : {1u, 2000u, 2900u, 9000u}) {
    Nodes nodes({1, 1, 2, 2}, Kind::alltoallv, 2400, static_cast<unsigned>(size_bytes));
    nodes.run_with_a_mistake(3, 0, size_bytes);
    if (testing::Test::HasFailure()) return;
  }
}

// Also where something comes from whom nothing is expected, and nothing from whom something is.
TEST(two_level_pairs, a_pair_that_only_one_side_knows_of_is_an_error_of_its_receiver) {
  const std::vector<std::uint64_t> placement{1, 1, 2, 2, 2};  // nothing is expected by 4 from 0
  for (const std::size_t block_bytes : {2400u, 20000u}) {
    Nodes none_expected(placement, Kind::alltoallv, block_bytes, 3);
    none_expected.run_with_a_mistake(0, 4, block_bytes / 3);
    Nodes none_sent(placement, Kind::alltoallv, block_bytes, 4);
    none_sent.run_with_a_mistake(1, 2, 0);
    if (testing::Test::HasFailure()) return;
  }
}

// More chunks than may be under way, so that some have yet to be sent.
TEST(two_level_pairs, one_rank_that_stops_leaves_nobody_waiting) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Nodes nodes(placement, Kind::alltoallv, seed % 4 < 2 ? 90000 : 2400, seed);
    if (seed % 2 == 0) nodes.in_place();
    nodes.dense().run_until_all_stop(static_cast<int>(seed % placement.size()), seed / 2, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(errors, 80);
}

// Nor do the later calls of its communicator, and what ends without an error is right.
TEST(two_level_pairs, calls_after_one_that_was_stopped_leave_nobody_waiting) {
  const std::vector<std::vector<std::uint64_t>> placements = {
      {1, 2}, {1, 1, 2, 2}, {1, 2, 2, 1}, {1, 2, 1, 2, 3}, {1, 1, 2, 3, 3}};
  long errors = 0;
  for (const Kind kind : {Kind::alltoallv, Kind::gatherv, Kind::scatterv}) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
      const auto& placement = placements[seed % placements.size()];
      Nodes nodes(placement, kind, seed % 3 == 0 ? 2400 : 20000, seed);
      if (seed % 2 == 0 && kind == Kind::alltoallv) nodes.in_place();
      if (seed % 7 != 0) nodes.dense();
      if (seed % 4 == 1) nodes.then({Kind::bcast, Kind::scatterv, Kind::allgather});
      nodes.run_until_all_stop(static_cast<int>(seed % placement.size()), seed / 5 * 3, errors, 5);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(errors, 500);
}

TEST(two_level_pairs, one_rank_that_stops_among_equal_blocks_leaves_nobody_waiting) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Nodes nodes(placement, Kind::alltoall, seed % 3 == 0 ? 500 : 20000, seed);
    if (seed % 2 == 0) nodes.in_place();
    if (seed % 4 == 0) nodes.parcels_of(15000);
    nodes.pair_by_pair().run_until_all_stop(static_cast<int>(seed % placement.size()), seed / 2,
                                            errors, 3);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(errors, 80);
}

// Nor where one of its pairs has two sizes.
TEST(two_level_pairs, one_rank_that_stops_leaves_nobody_waiting_after_a_mistake) {
  const std::vector<std::uint64_t> placement{1, 1, 2, 2};
  long errors = 0;
  for (unsigned seed = 1; seed <= 160; ++seed) {
    const std::size_t block_bytes = seed % 3 == 0 ? 2400 : 20000;
    const std::size_t sizes[] = {1, 2000, 9000, 19000};
    Nodes nodes(placement, Kind::alltoallv, block_bytes, seed);
    nodes.dense().with_a_mistake(0, 3, std::min(sizes[seed % 4], block_bytes));
    nodes.run_until_all_stop(static_cast<int>(seed / 4 % placement.size()), seed / 8, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(errors, 160);
}

// What it receives then has no more than a message can be long, either.
TEST(two_level_pairs, one_rank_that_stops_leaves_nobody_waiting_with_the_longest_parcels) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Nodes nodes(placement, Kind::alltoallv, 400000, seed);
    nodes.dense().parcels_of(INT_MAX).run_until_all_stop(static_cast<int>(seed % placement.size()),
                                                         seed / 2, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(errors, 20);
}

// Not where it may be cut off between a message to itself and the receive of it.
TEST(two_level_pairs, a_rank_that_is_cut_off_ends) {
  if (std::getenv("ACCORD_TEST_EXCLUSIVE_DEVICE") != nullptr) GTEST_SKIP() << "sends itself";
  for (const Kind kind : {Kind::alltoallv, Kind::gatherv, Kind::scatterv}) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
      Nodes nodes({1, 1, 2, 2, 2}, kind, 2400, seed);
      nodes.dense().run_until_cut_off(static_cast<int>(seed % 5), seed / 5);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(two_level_pairs, one_rank_that_stops_leaves_nobody_waiting_for_another_size) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Nodes nodes(placement, Kind::alltoallv, 20000, seed);
    nodes.lopsided().parcels_of(1000 + seed % 3 * 1000);
    nodes.run_until_all_stop(static_cast<int>(seed % placement.size()), seed * 2, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(errors, 120);
}

TEST(two_level_pairs, a_message_that_cannot_begin_leaves_nobody_waiting) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const int failing = static_cast<int>(seed % placement.size());
    const std::size_t block_bytes = seed % 3 == 0 ? 2400 : 20000;
    Nodes nodes(placement, Kind::alltoallv, block_bytes, seed, failing, seed / 6);
    nodes.dense().run_until_all_stop(failing, SIZE_MAX, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(errors, 40);
}

// Also where its rank has stopped before.
TEST(two_level_pairs, a_message_that_cannot_begin_while_it_stops_leaves_nobody_waiting) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    const int failing = static_cast<int>(seed % placement.size());
    const std::size_t block_bytes = seed % 3 == 0 ? 2400 : 20000;
    Nodes nodes(placement, Kind::alltoallv, block_bytes, seed, failing, seed / 6);
    nodes.dense().run_until_all_stop(failing, seed % 7 * 4, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(errors, 120);
}

}  // namespace
}  // namespace accord::test
