// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Plans of collectives over several nodes, carried out on plain memory: after all chunks every
// rank's buffer holds what the collective says, however the ranks are placed.
#include <numeric>

#include "two_level_plan_world.h"

namespace accord::coll {
namespace {

const std::vector<std::vector<std::uint64_t>> kPlacements = {
    {7, 8}, {7, 7, 8, 8}, {7, 7, 7, 8}, {7, 8, 7, 8, 8}, {9, 8, 7}, {7, 8, 8, 9, 7, 8, 9}};

class EveryKind : public testing::TestWithParam<Kind> {};

TEST_P(EveryKind, ends_as_the_collective_says_wherever_the_ranks_are) {
  const Kind kind = GetParam();
  const bool adds = kind == Kind::reduce || kind == Kind::allreduce ||
                    kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block ||
                    kind == Kind::scan || kind == Kind::exscan;
  const bool uneven = kind == Kind::reduce_scatter || kind == Kind::allgatherv;
  std::size_t most_chunks = 0;
  for (const auto& nodes : kPlacements) {
    for (const std::size_t block_bytes : {1u, 300u, 5000u}) {
      for (const int leaders : {1, INT_MAX}) {
        for (const bool in_place : {false, true}) {
          for (const int root : {0, static_cast<int>(nodes.size()) - 1}) {
            Case c{.call = {.kind = kind,
                            .size = static_cast<int>(nodes.size()),
                            .root = root,
                            .block_bytes = block_bytes},
                   .node_numbers = nodes,
                   .in_place = in_place,
                   .leaders_max = leaders};
            if (adds) {
              c.call.op = device::ReduceOp::sum;
              c.call.element = device::Element::uint8;
            }
            if (!TwoLevelPlan::fits(c.call, core::Placement::of(nodes), leaders, 0)) continue;
            // Some have nothing.
            for (std::size_t rank = 0; uneven && rank < nodes.size(); ++rank)
              c.call.blocks_bytes.push_back(rank == 0 ? block_bytes : rank % 3 * block_bytes / 2);
            for (const bool keeps_own : {false, true}) {
              c.keeps_own = keeps_own;
              World world(c);
              world.run();
              world.check();
              if (testing::Test::HasFatalFailure()) return;
              most_chunks = std::max(most_chunks, world.chunks());
            }
          }
        }
      }
    }
  }
  EXPECT_GT(most_chunks, 1u);
}

// Of ranks alone on their nodes none brings down what it has.
TEST(two_level_plan, keeps_what_a_rank_has_for_itself) {
  for (const auto& [kind, keepers] :
       std::map<Kind, std::size_t>{{Kind::allgather, 3}, {Kind::gather, 1}, {Kind::scatter, 1}}) {
    const Case c{.call = {.kind = kind, .size = 3, .root = 1, .block_bytes = 5000},
                 .node_numbers = {9, 8, 7},
                 .keeps_own = true};
    World world(c);
    world.run();
    world.check();
    EXPECT_EQ(keepers * 5000, world.kept_bytes()) << name_of(c);
  }
}

INSTANTIATE_TEST_SUITE_P(two_level_plan, EveryKind,
                         testing::Values(Kind::bcast, Kind::reduce, Kind::allreduce,
                                         Kind::allgather, Kind::alltoall, Kind::gather,
                                         Kind::scatter, Kind::reduce_scatter_block,
                                         Kind::reduce_scatter, Kind::allgatherv, Kind::scan,
                                         Kind::exscan));

TEST(two_level_plan, has_as_many_leaders_as_the_smallest_node_has_ranks) {
  const node::Call call{.kind = Kind::allreduce, .size = 5, .block_bytes = 4096};
  const std::vector<std::uint64_t> nodes{7, 8, 7, 8, 8};
  const core::Placement placement = core::Placement::of(nodes);
  EXPECT_EQ(TwoLevelPlan(call, placement, 4, false, INT_MAX, 1 << 20).leaders(), 2);
  EXPECT_EQ(TwoLevelPlan(call, placement, 4, false, 1, 1 << 20).leaders(), 1);
  EXPECT_EQ(placement.local_rank(4), 2);
}

TEST(two_level_plan, has_longer_parcels_for_more_nodes) {
  const auto chunks = [](std::uint64_t nodes) {
    std::vector<std::uint64_t> numbers(nodes);
    std::iota(numbers.begin(), numbers.end(), 1);
    const core::Placement placement = core::Placement::of(numbers);
    const node::Call call{.kind = Kind::bcast, .size = placement.ranks(), .block_bytes = 1 << 20};
    return TwoLevelPlan(call, placement, 0, false, INT_MAX, 1 << 16).chunks();
  };
  EXPECT_EQ(chunks(8), 16u);
  EXPECT_EQ(chunks(9), 8u);
  EXPECT_EQ(chunks(17), 6u);
}

// A node is sent what comes before it once.
TEST(two_level_plan, has_parcels_for_a_scan_that_are_as_long_for_any_number_of_nodes) {
  for (const std::uint64_t nodes : {2, 3, 8}) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t rank = 0; rank < 2 * nodes; ++rank) numbers.push_back(rank / 2);
    const core::Placement placement = core::Placement::of(numbers);
    const node::Call call{.kind = Kind::scan, .size = placement.ranks(), .block_bytes = 100};
    const TwoLevelPlan plan(call, placement, placement.ranks() - 2, false, 1, 1 << 16);
    EXPECT_EQ(plan.chunk(0).parcel_bytes, 300u) << nodes << " nodes";
  }
}

// 32 ranks on four nodes: a parcel has 32 x 8 pieces, of 2 KiB at least.
TEST(two_level_plan, has_longer_parcels_for_more_pieces) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t rank = 0; rank < 32; ++rank) numbers.push_back(rank / 8);
  const core::Placement placement = core::Placement::of(numbers);
  const node::Call call{.kind = Kind::alltoall, .size = 32, .block_bytes = 1 << 20};
  const TwoLevelPlan plan(call, placement, 0, false, INT_MAX, 1 << 18);
  EXPECT_EQ(plan.chunks(), (std::size_t{1} << 20) / 8 / 2048);
}

TEST(two_level_plan, has_parcels_that_suit_the_nodes) {
  const std::vector<std::uint64_t> numbers{1, 1, 2, 2};
  core::Placement placement = core::Placement::of(numbers);
  constexpr std::size_t kMiB = 1 << 20;
  const node::Call call{.kind = Kind::bcast, .size = 4, .block_bytes = 64 * kMiB};
  const auto chunks = [&](std::size_t asked_bytes) {
    return TwoLevelPlan(call, placement, 0, false, 1, asked_bytes).chunks();
  };
  const auto chunks_that_suit = [&] { return chunks(core::Placement::kParcelBytesAuto); };
  EXPECT_EQ(chunks_that_suit(), 171u);
  placement.shares_devices = true;
  EXPECT_EQ(chunks_that_suit(), 64u);
  placement.has_rdma = true;
  EXPECT_EQ(chunks_that_suit(), 16u);
  placement.shares_devices = false;
  EXPECT_EQ(chunks_that_suit(), 16u);
  EXPECT_EQ(chunks(kMiB / 8), 512u);
}

// Some device that two ranks of one node use, and adapters on all nodes.
TEST(two_level_plan, placement_tells_what_the_nodes_are_like) {
  std::vector<node::Record> records(4);
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    records[rank].node = 7 + rank % 2;
    records[rank].kernels.device = 5 + rank / 2;
    records[rank].has_rdma = 1;
    records[rank].adapters = device::AdapterReach::fast;
  }
  const auto placement = [&] {
    return core::Placement::of(std::span<const node::Record>(records));
  };
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(placement().node(rank), rank % 2);
  EXPECT_FALSE(placement().shares_devices);
  EXPECT_TRUE(placement().has_rdma);
  records[3].kernels.device = 5;
  EXPECT_EQ(placement().adapters, device::AdapterReach::fast);
  records[1].adapters = device::AdapterReach::slow;
  EXPECT_EQ(placement().adapters, device::AdapterReach::slow);
  records[2].has_rdma = 0;
  EXPECT_TRUE(placement().shares_devices);
  EXPECT_FALSE(placement().has_rdma);
  records[1].kernels.server = records[3].kernels.server = 9;
  EXPECT_FALSE(placement().shares_devices);
  records[3].kernels.server = 0;
  EXPECT_TRUE(placement().shares_devices);
  for (node::Record& record : records) record.kernels = {};  // all may use theirs at once
  EXPECT_FALSE(placement().shares_devices);
}

// A chunk waits for the device's other users, however short it is.
TEST(two_level_plan, has_fewer_chunks_where_ranks_share_a_device) {
  const std::vector<std::uint64_t> numbers{1, 1, 2, 2};
  core::Placement placement = core::Placement::of(numbers);
  const node::Call call{.kind = Kind::bcast, .size = 4, .block_bytes = 1 << 20};
  const auto chunks = [&] {
    return TwoLevelPlan(call, placement, 0, false, 1, core::Placement::kParcelBytesAuto).chunks();
  };
  EXPECT_EQ(chunks(), 4u);
  EXPECT_TRUE(TwoLevelPlan::fits(call, placement, INT_MAX, 16 << 10));
  placement.shares_devices = true;
  EXPECT_EQ(chunks(), 1u);
  EXPECT_FALSE(TwoLevelPlan::fits(call, placement, INT_MAX, 16 << 10));
  EXPECT_TRUE(TwoLevelPlan::fits(call, placement, INT_MAX, 0));
}

// A link of the slowest node carries no more than twice the message.
TEST(two_level_plan, an_allreduce_sends_each_share_twice) {
  const std::vector<std::uint64_t> nodes{1, 2, 3, 4};
  const core::Placement placement = core::Placement::of(nodes);
  const node::Call call{.kind = Kind::allreduce,
                        .size = 4,
                        .block_bytes = 1 << 20,
                        .op = device::ReduceOp::sum,
                        .element = device::Element::float32};
  const TwoLevelPlan plan(call, placement, 2, false, INT_MAX, 1 << 18);
  std::size_t sent = 0;
  for (std::size_t number = 0; number < plan.chunks(); ++number) {
    for (const auto& round : plan.chunk(number).rounds) {
      for (const auto& message : round.messages) sent += message.sends ? message.length_bytes : 0;
    }
  }
  EXPECT_EQ(sent, call.block_bytes / 4 * 3 * 2);
}

// Step by step two nodes have each other, the same step at both: those whose numbers add up to it.
TEST(two_level_plan, nodes_are_a_grid_of_as_few_dimensions_as_it_takes) {
  using Lines = std::vector<int>;
  EXPECT_EQ(grid_of(1, 32), Lines({1}));
  EXPECT_EQ(grid_of(32, 32), Lines({32}));
  EXPECT_EQ(grid_of(40, 32), Lines({5, 8}));
  EXPECT_EQ(grid_of(37, 32), Lines({37}));
  EXPECT_EQ(grid_of(74, 32), Lines({37, 2}));
  EXPECT_EQ(grid_of(512, 32), Lines({32, 16}));
  EXPECT_EQ(grid_of(4096, 32), Lines({16, 16, 16}));
  EXPECT_EQ(grid_of(12, 3), Lines({3, 2, 2}));
}

std::vector<std::uint64_t> nodes_of(std::uint64_t ranks, std::uint64_t ranks_per_node) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) numbers.push_back(rank / ranks_per_node);
  return numbers;
}

TEST(two_level_plan, an_allreduce_over_a_grid_ends_as_any_other) {
  for (const std::uint64_t nodes : {37, 40})
    for (const std::uint64_t ranks_per_node : {1, 2})
      for (const std::size_t bytes : {100, 6000}) {
        const auto numbers = nodes_of(nodes * ranks_per_node - 1, ranks_per_node);
        const Case c{.call = {.kind = Kind::allreduce,
                              .size = static_cast<int>(numbers.size()),
                              .block_bytes = bytes},
                     .node_numbers = numbers,
                     .parcel_bytes = 4096};
        World world(c);
        world.run();
        world.check();
        if (HasFatalFailure()) return;
      }
}

// Of 512 nodes, 32 x 16: messages to 31 others and 15 others, each twice, and by these the bytes
// that a ring would send. Sums stand in the order of the nodes.
TEST(two_level_plan, an_allreduce_of_many_nodes_has_few_messages) {
  constexpr std::size_t kBytes = 4 << 20;
  const core::Placement placement = core::Placement::of(nodes_of(512, 1));
  const node::Call call{.kind = Kind::allreduce, .size = 512, .block_bytes = kBytes};
  for (const int node : {0, 1, 47, 511}) {
    const TwoLevelPlan plan(call, placement, node, false, 1, kBytes);
    const TwoLevelPlan::Chunk chunk = plan.chunk(0);
    ASSERT_EQ(chunk.rounds.size(), 4u);
    std::vector<std::size_t> sends;
    std::size_t sent_bytes = 0;
    int step = 1;
    for (const TwoLevelPlan::Round& round : chunk.rounds) {
      sends.push_back(0);
      std::map<std::size_t, int> came_from;
      for (const TwoLevelPlan::Message& message : round.messages) {
        if (!message.sends) came_from[message.first_bytes] = message.peer;
        if (message.sends) sent_bytes += message.length_bytes;
        sends.back() += message.sends ? 1 : 0;
      }
      if (round.reductions.empty()) continue;
      const std::vector<std::size_t>& sources = round.reductions.at(0).sources;
      const int first = node - node / step % static_cast<int>(sources.size()) * step;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const bool is_own = sources[i] == round.reductions[0].result_bytes;
        EXPECT_EQ(is_own ? node : came_from.at(sources[i]), first + static_cast<int>(i) * step);
      }
      step *= static_cast<int>(sources.size());
    }
    EXPECT_EQ(sends, (std::vector<std::size_t>{31, 15, 15, 31}));
    EXPECT_EQ(sent_bytes * plan.chunks(), 2 * (kBytes - kBytes / 512));
  }
}

TEST(two_level_plan, no_two_leaders_begin_with_one_peer_at_a_time) {
  for (const Kind kind : {Kind::allreduce, Kind::allgather, Kind::alltoall}) {
    for (const int nodes : {2, 5, 8}) {
      node::Call call{.kind = kind, .size = nodes, .block_bytes = 64 << 10};
      if (kind == Kind::allreduce) {
        call.op = device::ReduceOp::sum;
        call.element = device::Element::uint8;
      }
      std::vector<std::uint64_t> numbers(static_cast<std::size_t>(nodes));
      std::iota(numbers.begin(), numbers.end(), 1);
      const core::Placement placement = core::Placement::of(numbers);
      for (int rank = 0; rank < nodes; ++rank) {
        const TwoLevelPlan plan(call, placement, rank, false, INT_MAX, 1 << 20);
        for (const auto& round : plan.chunk(0).rounds) {
          EXPECT_EQ(round.messages.size(), 2 * numbers.size() - 2);
          EXPECT_TRUE(std::ranges::is_sorted(
              round.messages, {},
              [&](const auto& message) { return (message.peer + rank) % nodes; }))
              << "rank " << rank << " of " << nodes;
        }
      }
    }
  }
}

TEST(two_level_plan, is_for_no_call_that_one_message_cannot_carry) {
  const std::vector<std::uint64_t> few{1, 2};
  std::vector<std::uint64_t> many;
  for (std::uint64_t rank = 0; rank < 65536; ++rank) many.push_back(rank / 256);
  const node::Call call{.kind = Kind::alltoall, .size = 2, .block_bytes = 1 << 30};
  EXPECT_TRUE(TwoLevelPlan::fits(call, core::Placement::of(few), INT_MAX, 0));
  EXPECT_FALSE(TwoLevelPlan::fits(call, core::Placement::of(many), INT_MAX, 0));
  EXPECT_FALSE(TwoLevelPlan::exists(Kind::alltoallv));
}

TEST(two_level_plan, is_for_scans_where_ranks_are_in_the_order_of_their_nodes) {
  const auto fits = [](Kind kind, const std::vector<std::uint64_t>& nodes) {
    const node::Call call{.kind = kind, .size = 4, .block_bytes = 1 << 20};
    return TwoLevelPlan::fits(call, core::Placement::of(nodes), INT_MAX, 0);
  };
  for (const Kind kind : {Kind::scan, Kind::exscan}) {
    EXPECT_TRUE(fits(kind, {8, 8, 7, 7}));
    EXPECT_TRUE(fits(kind, {3, 2, 2, 1}));
    EXPECT_FALSE(fits(kind, {1, 2, 1, 2}));
  }
  EXPECT_TRUE(fits(Kind::allreduce, {1, 2, 1, 2}));
}

// 256 KiB are four messages of 64 KiB among two leaders on two nodes each, and of 8 KiB on 32 nodes
// that have one.
TEST(two_level_plan, is_for_no_call_whose_messages_would_be_too_short) {
  constexpr std::size_t kKiB = 1024;
  const core::Placement few = core::Placement::of(std::vector<std::uint64_t>{1, 1, 2, 2});
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t node = 0; node < 32; ++node) numbers.push_back(node);
  const core::Placement many = core::Placement::of(numbers);
  const auto fits = [](Kind kind, const core::Placement& placement, int leaders,
                       std::size_t message_bytes_min) {
    const node::Call call{.kind = kind, .size = placement.ranks(), .block_bytes = 256 * kKiB};
    return TwoLevelPlan::fits(call, placement, leaders, message_bytes_min);
  };
  EXPECT_TRUE(fits(Kind::bcast, few, INT_MAX, 64 * kKiB));
  EXPECT_FALSE(fits(Kind::bcast, few, INT_MAX, 64 * kKiB + 1));
  EXPECT_TRUE(fits(Kind::bcast, few, 1, 128 * kKiB));
  EXPECT_TRUE(fits(Kind::bcast, many, INT_MAX, 8 * kKiB));
  EXPECT_FALSE(fits(Kind::bcast, many, INT_MAX, 16 * kKiB));
  // Here each of them has a block for the other.
  EXPECT_TRUE(fits(Kind::alltoall, many, INT_MAX, 16 * kKiB));
}

}  // namespace
}  // namespace accord::coll
