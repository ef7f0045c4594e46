// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two-level collectives in which all ranks know all sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "two_level_world.h"

namespace accord::test {
namespace {

class AnyOrder : public testing::TestWithParam<Kind> {};

TEST_P(AnyOrder, ends_with_the_right_bytes_call_after_call) {
  const std::vector<std::vector<std::uint64_t>> placements = {
      {1, 2}, {1, 1, 2, 2}, {1, 2, 1, 1}, {1, 2, 3, 2, 1}, {1, 1, 2, 3, 3}};
  unsigned seed = 1;
  for (const auto& placement : placements) {
    if (GetParam() == Kind::scan && !std::ranges::is_sorted(placement)) continue;
    for (const std::size_t block_bytes : {700u, 6000u, 20000u}) {
      Nodes nodes(placement, GetParam(), block_bytes, ++seed);
      nodes.run(3);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// From a parcel on the device of one leader into that of another, which reduces there.
TEST_P(AnyOrder, ends_with_the_right_bytes_by_a_transport) {
  const std::vector<std::vector<std::uint64_t>> placements = {
      {1, 2}, {1, 1, 2, 2}, {1, 2, 1, 1}, {1, 2, 3, 2, 1}, {1, 1, 2, 3, 3}};
  unsigned seed = 1000;
  for (const auto& placement : placements) {
    if (GetParam() == Kind::scan && !std::ranges::is_sorted(placement)) continue;
    for (const std::size_t block_bytes : {700u, 6000u, 20000u}) {
      Nodes nodes(placement, GetParam(), block_bytes, ++seed);
      nodes.by_transport().run(3);
      if (!node::goes_by_pairs(GetParam())) {
        EXPECT_NE(nodes.offers().posted(), 0u);
        EXPECT_EQ(nodes.offers().posted(), nodes.offers().posted_on_devices());
      }
      // Where some are not reached, yet, what is for these goes by messages.
      Nodes(placement, GetParam(), block_bytes, ++seed).by_transport_or_not().run(3);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Neither with something on offer, nor with something that is being fetched or reduced.
TEST(two_level_exchange, one_rank_that_stops_among_offers_leaves_nobody_waiting) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (const Kind kind : {Kind::allreduce, Kind::bcast, Kind::alltoall, Kind::gather}) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
      Nodes nodes(placement, kind, 20000, seed);
      if (seed % 2 == 0) nodes.by_transport_or_not();
      nodes.by_transport().run_until_all_stop(static_cast<int>(seed % placement.size()), seed,
                                              errors, 3);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(errors, 200);
}

INSTANTIATE_TEST_SUITE_P(two_level_exchange, AnyOrder,
                         testing::Values(Kind::allreduce, Kind::allgather, Kind::alltoall,
                                         Kind::alltoallv, Kind::gatherv, Kind::scatterv,
                                         Kind::bcast, Kind::scan));

TEST(two_level_exchange, a_node_of_one_rank_takes_no_region) {
  Nodes nodes({1, 2, 1}, Kind::allreduce, 20000, 1);
  nodes.run(2);
  EXPECT_NE(nodes.chunks_through_region(0), 0u);
  EXPECT_EQ(nodes.chunks_through_region(1), 0u);
}

// Whoever stops, and whenever: all others get an error, wherever they are, and no message is left.
TEST(two_level_exchange, one_rank_that_stops_ends_the_call_of_all) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  constexpr unsigned kCalls = 40;
  long errors = 0;
  for (unsigned seed = 1; seed <= kCalls; ++seed) {
    Nodes nodes(placement, seed % 2 == 0 ? Kind::allreduce : Kind::alltoall, 20000, seed);
    nodes.run_until_all_stop(static_cast<int>(seed % placement.size()), seed * 5, errors);
    if (testing::Test::HasFailure()) return;
  }
  // Some have all that they need before.
  EXPECT_GT(errors, kCalls * std::ssize(placement) * 9 / 10);
}

// So do the later calls of its communicator, which some ranks begin before they hear of it; and
// what ends without an error is right.
TEST(two_level_exchange, calls_after_one_that_was_stopped_end_too) {
  const std::vector<std::vector<std::uint64_t>> placements = {
      {1, 2}, {1, 1, 2, 2}, {1, 2, 2, 1}, {1, 2, 1, 2, 3}, {1, 1, 2, 3, 3}};
  long errors = 0;
  for (const Kind kind : {Kind::allreduce, Kind::allgather, Kind::alltoall, Kind::bcast, Kind::scan,
                          Kind::gather, Kind::scatter}) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
      const auto& placement = placements[seed % placements.size()];
      if (kind == Kind::scan && !std::ranges::is_sorted(placement)) continue;
      Nodes nodes(placement, kind, seed % 3 == 0 ? 700 : 20000, seed);
      if (seed % 2 == 0) nodes.then({Kind::gatherv, Kind::allgather, Kind::scatterv, Kind::bcast});
      nodes.run_until_all_stop(static_cast<int>(seed % placement.size()), seed / 5 * 8, errors, 5);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(errors, 2000);
}

// One that cannot begin a message of a round ends the call as well: it makes up for that message
// and for those behind it, of the same round too, so that nobody waits for one that never comes.
TEST(two_level_exchange, a_message_that_cannot_begin_ends_the_call_of_all) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  constexpr unsigned kCalls = 40;
  long errors = 0;
  for (unsigned seed = 1; seed <= kCalls; ++seed) {
    const int failing = static_cast<int>(seed % 2);  // leaders
    Nodes nodes(placement, seed % 4 < 2 ? Kind::allreduce : Kind::alltoall, 20000, seed, failing,
                seed / 2);
    nodes.run_until_all_stop(failing, SIZE_MAX, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(errors, kCalls);
}

// Also where it has stopped before.
TEST(two_level_exchange, a_message_that_cannot_begin_while_it_stops_ends_the_call_of_all) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  long errors = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const int failing = static_cast<int>(seed % 2);  // leaders
    Nodes nodes(placement, seed % 4 < 2 ? Kind::allreduce : Kind::alltoall, 20000, seed, failing,
                seed / 4);
    nodes.run_until_all_stop(failing, seed % 7 * 5, errors);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(errors, 80);
}

// So does one that cannot reduce, which the rounds behind do not wait for.
TEST(two_level_exchange, a_reduction_that_fails_ends_the_call_of_all) {
  const std::vector<std::uint64_t> placement{1, 2, 1, 2, 3};
  for (unsigned seed = 1; seed <= 10; ++seed) {
    long errors = 0;
    reductions_left = seed;
    Nodes nodes(placement, Kind::allreduce, 20000, seed);
    nodes.run_until_all_stop(0, SIZE_MAX, errors);
    reductions_left = -1;
    if (testing::Test::HasFailure()) return;
    EXPECT_GE(errors, 1);
  }
}

}  // namespace
}  // namespace accord::test
