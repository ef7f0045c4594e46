// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Plans of collectives over several nodes, carried out on plain memory: after all chunks every
// rank's buffer holds what the collective says, however the ranks are placed.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/two_level/plan.h"

namespace accord::core {
namespace {

using node::Kind;
using Bytes = std::vector<unsigned char>;

constexpr unsigned char kUntouched = 0xee;

unsigned char value(int rank, std::size_t at) {
  return static_cast<unsigned char>(rank * 37 + static_cast<int>(at % 251) + 1);
}

struct Case {
  node::Call call;
  std::vector<std::uint64_t> node_numbers;
  bool in_place = false;
  int leaders_max = INT_MAX;
  std::size_t parcel_bytes = 4096;
};

std::string name_of(const Case& c) {
  std::string nodes;
  for (const auto node : c.node_numbers) nodes += " " + std::to_string(node);
  return "kind " + std::to_string(static_cast<int>(c.call.kind)) + " root " +
         std::to_string(c.call.root) + " block " + std::to_string(c.call.block_bytes) + " nodes" +
         nodes + " leaders " + std::to_string(c.leaders_max) + (c.in_place ? " in place" : "");
}

// All ranks of one call. Reductions add bytes, which is what the sum of uint8 is.
class World {
 public:
  explicit World(const Case& c) : case_(c), placement_(Placement::of(c.node_numbers)) {
    for (int rank = 0; rank < size(); ++rank) {
      Bytes in(total_bytes());
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      Bytes out(in.size(), kUntouched);
      if (gathers() && in_place(rank))
        std::copy_n(in.begin(), length_of(rank), out.begin() + static_cast<long>(first_of(rank)));
      if (c.in_place && c.call.kind == Kind::alltoall) out = in;
      in_.push_back(std::move(in));
      out_.push_back(std::move(out));
      plans_.push_back(std::make_unique<TwoLevelPlan>(c.call, placement_, rank, in_place(rank),
                                                      c.leaders_max, c.parcel_bytes));
    }
  }

  std::size_t chunks() const { return plans_[0]->chunks(); }
  void run() {
    for (std::size_t number = 0; number < chunks(); ++number) {
      chunks_.clear();
      parcels_.clear();
      for (const auto& plan : plans_) {
        ASSERT_EQ(plan->chunks(), chunks());
        chunks_.push_back(plan->chunk(number));
        parcels_.emplace_back(chunks_.back().parcel_bytes, kUntouched);
      }
      for (const auto& ranks : placement_.members) move(ranks, &TwoLevelPlan::Chunk::up);
      send_rounds();
      for (const auto& ranks : placement_.members) move(ranks, &TwoLevelPlan::Chunk::down);
    }
  }

  void check() const {
    for (int rank = 0; rank < size(); ++rank) {
      const Bytes wanted = expected(rank);
      const Bytes& out = out_[static_cast<std::size_t>(rank)];
      const auto differ = std::ranges::mismatch(wanted, out);
      ASSERT_TRUE(differ.in1 == wanted.end())
          << name_of(case_) << ": rank " << rank << ", byte " << differ.in1 - wanted.begin();
    }
  }

 private:
  int size() const { return static_cast<int>(case_.node_numbers.size()); }
  bool gathers() const {
    return case_.call.kind == Kind::allgather || case_.call.kind == Kind::allgatherv ||
           case_.call.kind == Kind::gather;
  }
  // What the shim says: gather and scatter are in place at the root alone.
  bool in_place(int rank) const {
    const bool rooted = case_.call.kind == Kind::gather || case_.call.kind == Kind::scatter;
    return case_.in_place && (!rooted || rank == case_.call.root);
  }
  std::size_t length_of(int rank) const {
    const node::Call& call = case_.call;
    return call.blocks_bytes.empty() ? call.block_bytes
                                     : call.blocks_bytes[static_cast<std::size_t>(rank)];
  }
  std::size_t first_of(int rank) const {
    std::size_t first = 0;
    for (int before = 0; before < rank; ++before) first += length_of(before);
    return first;
  }
  std::size_t total_bytes() const { return first_of(size()); }

  // What the parts say, of what.
  static Bytes taken(const TwoLevelPlan::Parts& parts, const Bytes& from) {
    Bytes bytes;
    for (const auto& part : parts) {
      EXPECT_LE(part.first_bytes + part.length_bytes, from.size());
      const auto first = from.begin() + static_cast<long>(part.first_bytes);
      bytes.insert(bytes.end(), first, first + static_cast<long>(part.length_bytes));
    }
    return bytes;
  }
  static void put(const TwoLevelPlan::Parts& parts, const Bytes& bytes, Bytes& into) {
    std::size_t at = 0;
    for (const auto& part : parts) {
      ASSERT_LE(at + part.length_bytes, bytes.size());
      if (!part.nowhere()) {
        ASSERT_LE(part.first_bytes + part.length_bytes, into.size());
        std::memcpy(into.data() + part.first_bytes, bytes.data() + at, part.length_bytes);
      }
      at += part.length_bytes;
    }
  }

  // Where the bytes that go up are: the source of a gather in place is where they end.
  const Bytes& source(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    const bool there = gathers() || case_.call.kind == Kind::alltoall;
    return there && in_place(rank) ? out_[index] : in_[index];
  }
  void move(const std::vector<int>& ranks, TwoLevelPlan::Local TwoLevelPlan::Chunk::*step) {
    const bool up = step == &TwoLevelPlan::Chunk::up;
    std::vector<Bytes> shown;
    for (const int rank : ranks) {
      const auto index = static_cast<std::size_t>(rank);
      const TwoLevelPlan::Local& local = chunks_[index].*step;
      if (local.blocks_bytes.empty()) return;
      ASSERT_EQ(local.blocks_bytes,
                (chunks_[static_cast<std::size_t>(ranks[0])].*step).blocks_bytes);
      shown.push_back(taken(local.in, up ? source(rank) : parcels_[index]));
      if (!local.reduces) {
        ASSERT_EQ(shown.back().size(), local.blocks_bytes[shown.size() - 1]);
      }
    }
    for (std::size_t number = 0; number < ranks.size(); ++number) {
      const auto index = static_cast<std::size_t>(ranks[number]);
      const TwoLevelPlan::Local& local = chunks_[index].*step;
      const Bytes all = local.reduces ? reduced(shown, local.blocks_bytes, number) : joined(shown);
      const bool wanted = up || receives(ranks[number]);
      if (wanted) put(local.out, all, up ? parcels_[index] : out_[index]);
    }
  }
  static Bytes joined(const std::vector<Bytes>& shown) {
    Bytes all;
    for (const Bytes& one : shown) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  static Bytes reduced(const std::vector<Bytes>& shown, const std::vector<std::size_t>& blocks,
                       std::size_t number) {
    std::size_t first = 0;
    for (std::size_t before = 0; before < number; ++before) first += blocks[before];
    Bytes sum(blocks[number], 0);
    for (const Bytes& one : shown) {
      EXPECT_LE(first + sum.size(), one.size());
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = static_cast<unsigned char>(sum[i] + one[first + i]);
    }
    return sum;
  }
  bool receives(int rank) const {
    const Kind kind = case_.call.kind;
    if (kind == Kind::reduce || kind == Kind::gather) return rank == case_.call.root;
    if (kind == Kind::bcast) return rank != case_.call.root;
    if (kind == Kind::exscan) return rank != 0;
    return kind != Kind::scatter || !in_place(rank);
  }

  // Each rank goes on with its rounds as far as there is what it receives.
  void send_rounds() {
    on_the_way_.clear();
    std::vector<std::size_t> rounds(chunks_.size(), 0);
    for (int rank = 0; rank < size(); ++rank) send(rank, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size(); ++rank) {
        std::size_t& number = rounds[static_cast<std::size_t>(rank)];
        if (!has_all(rank, number)) continue;
        receive(rank, number);
        send(rank, ++number);
        moved = true;
      }
    }
    for (std::size_t rank = 0; rank < chunks_.size(); ++rank)
      ASSERT_EQ(rounds[rank], chunks_[rank].rounds.size()) << name_of(case_);
    for (const auto& [pair, queue] : on_the_way_) EXPECT_TRUE(queue.empty()) << name_of(case_);
  }
  const TwoLevelPlan::Round* round(int rank, std::size_t number) const {
    const auto& rounds = chunks_[static_cast<std::size_t>(rank)].rounds;
    return number < rounds.size() ? &rounds[number] : nullptr;
  }
  bool has_all(int rank, std::size_t number) {
    const TwoLevelPlan::Round* const one = round(rank, number);
    return one != nullptr && std::ranges::all_of(one->messages, [&](const auto& message) {
             return message.sends || !on_the_way_[{message.peer, rank}].empty();
           });
  }
  void send(int rank, std::size_t number) {
    const TwoLevelPlan::Round* const one = round(rank, number);
    if (one == nullptr) return;
    const Bytes& parcel = parcels_[static_cast<std::size_t>(rank)];
    for (const auto& message : one->messages) {
      if (message.sends)
        on_the_way_[{rank, message.peer}].push_back(
            taken({{message.first_bytes, message.length_bytes}}, parcel));
    }
  }
  void receive(int rank, std::size_t number) {
    const TwoLevelPlan::Round& one = *round(rank, number);
    Bytes& parcel = parcels_[static_cast<std::size_t>(rank)];
    for (const auto& message : one.messages) {
      if (message.sends) continue;
      auto& queue = on_the_way_[{message.peer, rank}];
      ASSERT_EQ(queue.front().size(), message.length_bytes);
      put({{message.first_bytes, message.length_bytes}}, queue.front(), parcel);
      queue.pop_front();
    }
    for (const auto& reduction : one.reductions) reduce(reduction, parcel);
  }
  static void reduce(const TwoLevelPlan::Reduction& one, Bytes& parcel) {
    Bytes sum(one.length_bytes, 0);
    for (const std::size_t first : one.sources) {
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = static_cast<unsigned char>(sum[i] + parcel.at(first + i));
    }
    put({{one.result_bytes, sum.size()}}, sum, parcel);
  }

  unsigned char sum_at(std::size_t at) const { return sum_before(size(), at); }
  static unsigned char sum_before(int end, std::size_t at) {
    int sum = 0;
    for (int rank = 0; rank < end; ++rank) sum += value(rank, at);
    return static_cast<unsigned char>(sum);
  }
  Bytes expected(int rank) const {
    const Kind kind = case_.call.kind;
    Bytes wanted = out_[static_cast<std::size_t>(rank)];
    std::fill(wanted.begin(), wanted.end(), kUntouched);
    if (!receives(rank)) return wanted;
    const std::size_t own = first_of(rank);
    for (int peer = 0; peer < size(); ++peer) {
      for (std::size_t i = 0; i < length_of(peer); ++i) {
        unsigned char& there = wanted[first_of(peer) + i];
        if (gathers()) there = value(peer, i);
        if (kind == Kind::alltoall) there = value(peer, own + i);
      }
    }
    for (std::size_t i = 0; i < case_.call.block_bytes; ++i) {
      if (kind == Kind::bcast) wanted[i] = value(case_.call.root, i);
      if (kind == Kind::reduce || kind == Kind::allreduce) wanted[i] = sum_at(i);
      if (kind == Kind::scan) wanted[i] = sum_before(rank + 1, i);
      if (kind == Kind::exscan) wanted[i] = sum_before(rank, i);
    }
    for (std::size_t i = 0; i < length_of(rank); ++i) {
      if (kind == Kind::scatter) wanted[i] = value(case_.call.root, own + i);
      if (kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block)
        wanted[i] = sum_at(own + i);
    }
    return wanted;
  }

  const Case& case_;
  Placement placement_;
  std::vector<Bytes> in_;
  std::vector<Bytes> out_;
  std::vector<std::unique_ptr<TwoLevelPlan>> plans_;
  std::vector<TwoLevelPlan::Chunk> chunks_;
  std::vector<Bytes> parcels_;
  std::map<std::pair<int, int>, std::deque<Bytes>> on_the_way_;  // by sender and receiver
};

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
            if (!TwoLevelPlan::fits(c.call, Placement::of(nodes), leaders, 0)) continue;
            // Some have nothing.
            for (std::size_t rank = 0; uneven && rank < nodes.size(); ++rank)
              c.call.blocks_bytes.push_back(rank == 0 ? block_bytes : rank % 3 * block_bytes / 2);
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
  EXPECT_GT(most_chunks, 1u);
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
  const Placement placement = Placement::of(nodes);
  EXPECT_EQ(TwoLevelPlan(call, placement, 4, false, INT_MAX, 1 << 20).leaders(), 2);
  EXPECT_EQ(TwoLevelPlan(call, placement, 4, false, 1, 1 << 20).leaders(), 1);
  EXPECT_EQ(placement.local_rank(4), 2);
}

TEST(two_level_plan, has_longer_parcels_for_more_nodes) {
  const auto chunks = [](std::uint64_t nodes) {
    std::vector<std::uint64_t> numbers(nodes);
    std::iota(numbers.begin(), numbers.end(), 1);
    const Placement placement = Placement::of(numbers);
    const node::Call call{.kind = Kind::bcast, .size = placement.ranks(), .block_bytes = 1 << 20};
    return TwoLevelPlan(call, placement, 0, false, INT_MAX, 1 << 16).chunks();
  };
  EXPECT_EQ(chunks(8), 16u);
  EXPECT_EQ(chunks(9), 8u);
  EXPECT_EQ(chunks(17), 6u);
}

// 32 ranks on four nodes: a parcel has 32 x 8 pieces, of 2 KiB at least.
TEST(two_level_plan, has_longer_parcels_for_more_pieces) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t rank = 0; rank < 32; ++rank) numbers.push_back(rank / 8);
  const Placement placement = Placement::of(numbers);
  const node::Call call{.kind = Kind::alltoall, .size = 32, .block_bytes = 1 << 20};
  const TwoLevelPlan plan(call, placement, 0, false, INT_MAX, 1 << 18);
  EXPECT_EQ(plan.chunks(), (std::size_t{1} << 20) / 8 / 2048);
}

TEST(two_level_plan, has_parcels_that_suit_the_nodes) {
  const std::vector<std::uint64_t> numbers{1, 1, 2, 2};
  Placement placement = Placement::of(numbers);
  constexpr std::size_t kMiB = 1 << 20;
  const node::Call call{.kind = Kind::bcast, .size = 4, .block_bytes = 64 * kMiB};
  const auto chunks = [&](std::size_t asked_bytes) {
    return TwoLevelPlan(call, placement, 0, false, 1, asked_bytes).chunks();
  };
  const auto chunks_that_suit = [&] { return chunks(Placement::kParcelBytesAuto); };
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
  }
  const auto placement = [&] { return Placement::of(std::span<const node::Record>(records)); };
  EXPECT_EQ(placement().node_of, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_FALSE(placement().shares_devices);
  EXPECT_TRUE(placement().has_rdma);
  records[3].kernels.device = 5;
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
  Placement placement = Placement::of(numbers);
  const node::Call call{.kind = Kind::bcast, .size = 4, .block_bytes = 1 << 20};
  const auto chunks = [&] {
    return TwoLevelPlan(call, placement, 0, false, 1, Placement::kParcelBytesAuto).chunks();
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
  const Placement placement = Placement::of(nodes);
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

TEST(two_level_plan, is_for_no_call_that_one_message_cannot_carry) {
  const std::vector<std::uint64_t> few{1, 2};
  std::vector<std::uint64_t> many;
  for (std::uint64_t rank = 0; rank < 65536; ++rank) many.push_back(rank / 256);
  const node::Call call{.kind = Kind::alltoall, .size = 2, .block_bytes = 1 << 30};
  EXPECT_TRUE(TwoLevelPlan::fits(call, Placement::of(few), INT_MAX, 0));
  EXPECT_FALSE(TwoLevelPlan::fits(call, Placement::of(many), INT_MAX, 0));
  EXPECT_FALSE(TwoLevelPlan::exists(Kind::alltoallv));
}

TEST(two_level_plan, is_for_scans_where_ranks_are_in_the_order_of_their_nodes) {
  const auto fits = [](Kind kind, const std::vector<std::uint64_t>& nodes) {
    const node::Call call{.kind = kind, .size = 4, .block_bytes = 1 << 20};
    return TwoLevelPlan::fits(call, Placement::of(nodes), INT_MAX, 0);
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
  const Placement few = Placement::of(std::vector<std::uint64_t>{1, 1, 2, 2});
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t node = 0; node < 32; ++node) numbers.push_back(node);
  const Placement many = Placement::of(numbers);
  const auto fits = [](Kind kind, const Placement& placement, int leaders,
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
}  // namespace accord::core
