// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What one rank does in a job of many takes no more steps than there are ranks. Steps are counted,
// never timed.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <optional>
#include <random>
#include <ranges>
#include <vector>

#include "coll/inter/plan.h"
#include "core/job_nodes.h"
#include "core/placement.h"
#include "device/kernel_place.h"
#include "net/address_table.h"

namespace accord {

namespace {
std::size_t comparisons = 0;
}

// A number of a node, of which comparisons are counted.
struct Counted {
  std::uint64_t number;
  bool operator==(const Counted& other) const noexcept {
    ++comparisons;
    return number == other.number;
  }
};

}  // namespace accord

template <>
struct std::hash<accord::Counted> {
  std::size_t operator()(const accord::Counted& one) const noexcept {
    return one.number * 0x9e3779b97f4a7c15U;
  }
};

namespace accord {
namespace {

using core::Placement;
using device::AdapterReach;
using device::KernelPlace;
using node::Kind;

TEST(scale, each_rank_is_placed_in_a_few_steps) {
  constexpr std::size_t kNodes = 3000;
  std::vector<Counted> numbers;
  for (std::size_t rank = 0; rank < 4 * kNodes; ++rank) numbers.push_back({rank % kNodes + 1});
  comparisons = 0;
  const Placement placement = Placement::of_numbers(numbers);
  EXPECT_LE(comparisons, 4 * numbers.size());
  EXPECT_EQ(placement.nodes(), static_cast<int>(kNodes));
  EXPECT_EQ(placement.fewest(), 4);
  EXPECT_EQ(placement.most(), 4);
  EXPECT_FALSE(placement.in_order());
  for (int node = 0; node < placement.nodes(); ++node) {
    EXPECT_EQ(placement.ranks_before(node), 4 * node);
    for (int local = 0; local < 4; ++local) {
      const int rank = placement.on(node)[static_cast<std::size_t>(local)];
      EXPECT_EQ(placement.node(rank), node);
      EXPECT_EQ(placement.local_rank(rank), local);
    }
  }
}

TEST(scale, nobody_is_on_no_node) {
  EXPECT_EQ(Placement().ranks(), 0);
  EXPECT_EQ(Placement().nodes(), 0);
  EXPECT_EQ(Placement::of(std::vector<std::uint64_t>()).nodes(), 0);
}

// What a node is, is told once: a communicator only names its ranks.
TEST(scale, a_communicator_is_placed_by_what_the_job_knows) {
  std::vector<core::JobNodes::Word> words;
  for (std::uint64_t process = 0; process < 12; ++process)
    words.push_back({.node = 100 - process / 4,
                     .has_rdma = process == 5 ? 0U : 1U,
                     .adapters = process == 5 ? AdapterReach::slow : AdapterReach::fast});
  core::JobNodes job;
  EXPECT_FALSE(job.are_known());
  job.learn(words);
  EXPECT_TRUE(job.are_known());
  const Placement mixed = job.placement(std::vector<int>{9, 1, 8, 0, 2});
  EXPECT_EQ(mixed.nodes(), 2);
  EXPECT_EQ(mixed.node(0), mixed.node(2));
  EXPECT_EQ(mixed.most(), 3);
  EXPECT_TRUE(mixed.has_rdma);
  EXPECT_EQ(mixed.adapters, AdapterReach::fast);
  EXPECT_EQ(job.placement(std::vector<int>{0, 4}).adapters, AdapterReach::slow);
  EXPECT_FALSE(job.placement(std::vector<int>{0, 4}).has_rdma);  // another of its node has none
  EXPECT_EQ(job.placement(std::vector<int>{4, 5, 7}).nodes(), 1);
}

// Each group of a team, and each persistent request, has a copy.
TEST(scale, copies_of_a_placement_have_one_memory) {
  const Placement placement = Placement::of(std::vector<std::uint64_t>{1, 1, 2});
  const Placement copy = placement;  // NOLINT: that it is one is what is tested
  EXPECT_EQ(copy.on(0).data(), placement.on(0).data());
}

// As what it says: that some pair does.
template <class Takes>
bool any_pair(const std::vector<KernelPlace>& places, Takes takes) {
  for (std::size_t one = 0; one < places.size(); ++one)
    for (std::size_t other = one + 1; other < places.size(); ++other)
      if (takes(places[one], places[other])) return true;
  return false;
}

TEST(scale, turns_are_seen_by_one_look_at_each_rank) {
  std::mt19937 random(1);
  std::size_t seen = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<KernelPlace> places(random() % 6);
    for (KernelPlace& place : places)
      place = {.device = random() % 4, .server = random() % 3, .turn_us = random() % 2 * 150};
    std::size_t looks = 0;
    const auto looked_at = places | std::views::transform([&](const KernelPlace& place) {
                             ++looks;
                             return place;
                           });
    EXPECT_EQ(device::take_turns(looked_at), any_pair(places, device::takes_turns));
    EXPECT_LE(looks, places.size());
    looks = 0;
    EXPECT_EQ(device::take_long_turns(looked_at), any_pair(places, device::takes_long_turns));
    EXPECT_LE(looks, places.size());
    seen += device::take_long_turns(places) ? 1 : 0;
  }
  EXPECT_GT(seen, 100u);
  EXPECT_LT(seen, 3900u);
}

TEST(scale, a_worker_is_found_among_many_by_few_comparisons) {
  constexpr std::uint64_t kPeers = 5000;
  net::AddressTable<std::uint64_t> table;
  std::vector<std::vector<std::byte>> addresses;
  for (std::uint64_t peer = 0; peer < kPeers; ++peer) {
    std::vector<std::byte> address(200, std::byte{7});
    std::memcpy(address.data() + 100, &peer, sizeof peer);
    ASSERT_EQ(table.find(address), nullptr);
    table.add(address, peer);
    addresses.push_back(std::move(address));
  }
  for (std::uint64_t peer = 0; peer < kPeers; ++peer) {
    const std::uint64_t* const found = table.find(addresses[peer]);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, peer);
  }
  EXPECT_LE(table.comparisons(), 2 * kPeers);
  std::uint64_t sum = 0;
  table.for_each([&](std::uint64_t peer) { sum += peer; });
  EXPECT_EQ(sum, kPeers * (kPeers - 1) / 2);
  table.clear();
  EXPECT_EQ(table.find(addresses[0]), nullptr);
}

class OfPlan : public testing::TestWithParam<Kind> {};

// Looks at lengths of blocks: four times as many where there are four times as many ranks.
TEST_P(OfPlan, a_chunk_takes_steps_as_there_are_ranks) {
  const auto looks = [&](std::size_t ranks) {
    std::vector<std::uint64_t> numbers;
    for (std::size_t rank = 0; rank < ranks; ++rank) numbers.push_back(rank / 4 + 1);
    const Placement placement = Placement::of(numbers);
    node::Call call{.kind = GetParam(), .size = static_cast<int>(ranks), .block_bytes = 64 << 10};
    if (GetParam() == Kind::allgatherv) call.blocks_bytes.assign(ranks, call.block_bytes);
    const coll::TwoLevelPlan plan(call, placement, 5, false, INT_MAX, Placement::kParcelBytesAuto);
    EXPECT_FALSE(plan.chunk(0).rounds.empty());
    return plan.looks();
  };
  EXPECT_LE(looks(4096), 5 * looks(1024));
}

INSTANTIATE_TEST_SUITE_P(scale, OfPlan,
                         testing::Values(Kind::bcast, Kind::allreduce, Kind::allgather,
                                         Kind::allgatherv, Kind::alltoall,
                                         Kind::reduce_scatter_block));

}  // namespace
}  // namespace accord
