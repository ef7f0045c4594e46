// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Plans of the node room, carried out on plain memory: after all chunks every rank's buffer holds
// what the collective says, and nothing is put or fetched outside a slot.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "node/plan.h"

namespace accord::node {
namespace {

using Bytes = std::vector<unsigned char>;

unsigned char value(int rank, std::size_t at) {
  return static_cast<unsigned char>(rank * 37 + static_cast<int>(at % 251) + 1);
}

struct Case {
  Call call;
  std::size_t slot_bytes;
  bool in_place;
};

std::string name(const Case& c) {
  return "kind " + std::to_string(static_cast<int>(c.call.kind)) + " ranks " +
         std::to_string(c.call.size) + " root " + std::to_string(c.call.root) + " block " +
         std::to_string(c.call.block_bytes) + " slot " + std::to_string(c.slot_bytes) +
         (c.in_place ? " in place" : "");
}

// The block of a rank, where blocks may differ.
std::size_t length_of(const Call& call, int rank) {
  return call.blocks_bytes.empty() ? call.block_bytes
                                   : call.blocks_bytes[static_cast<std::size_t>(rank)];
}
std::size_t first_of(const Call& call, int rank) {
  std::size_t first = 0;
  for (int before = 0; before < rank; ++before) first += length_of(call, before);
  return first;
}

// All ranks of one call. Reductions add bytes, which is what the sum of uint8 is.
class World {
 public:
  explicit World(const Case& c) : case_(c), plan_(c.call, c.slot_bytes) {
    const auto ranks = static_cast<std::size_t>(c.call.size);
    for (int rank = 0; rank < c.call.size; ++rank) {
      Bytes in(c.call.block_bytes * ranks);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      Bytes out(in.size(), 0);
      const std::size_t own = first_of(c.call, rank);
      if (c.in_place && (c.call.kind == Kind::allgather || c.call.kind == Kind::allgatherv))
        std::memcpy(out.data() + own, in.data() + own, length_of(c.call, rank));
      in_.push_back(std::move(in));
      out_.push_back(std::move(out));
      slots_.emplace_back(c.slot_bytes, 0);
    }
  }

  void run() {
    for (std::size_t chunk = 0; chunk < plan_.chunks(); ++chunk) {
      for (Bytes& slot : slots_) std::fill(slot.begin(), slot.end(), 0xee);
      for (int rank = 0; rank < case_.call.size; ++rank) fill(rank, chunk);
      for (int rank = 0; plan_.reduces() && rank < case_.call.size; ++rank) reduce(rank, chunk);
      for (int rank = 0; rank < case_.call.size; ++rank) pull(rank, chunk);
    }
  }

  void check() const {
    const std::size_t block = case_.call.block_bytes;
    for (int rank = 0; rank < case_.call.size; ++rank) {
      for (int peer = 0; peer < case_.call.size; ++peer) {
        for (std::size_t i = 0; i < block; ++i) {
          const int got = out_[at(rank)][at(peer) * block + i];
          ASSERT_EQ(expected(rank, peer, i), got)
              << name(case_) << ": rank " << rank << " block " << peer << " byte " << i;
        }
      }
    }
  }

  void check_uneven() const {
    const Call& call = case_.call;
    for (int rank = 0; rank < call.size; ++rank) {
      Bytes expected(out_[at(rank)].size(), 0);
      for (int peer = 0; peer < call.size; ++peer) {
        const std::size_t first = first_of(call, peer);
        for (std::size_t i = 0; i < length_of(call, peer); ++i) {
          if (call.kind == Kind::allgatherv)
            expected[first + i] = value(peer, (case_.in_place ? first : 0) + i);
          if (call.kind == Kind::reduce_scatter && peer == rank)
            expected[i] = static_cast<unsigned char>(sum_of_first(call.size, first + i));
        }
      }
      ASSERT_EQ(expected, out_[at(rank)]) << name(case_) << ": rank " << rank;
    }
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  static int sum_of_first(int ranks, std::size_t offset) {
    unsigned total = 0;
    for (int from = 0; from < ranks; ++from) total += value(from, offset);
    return static_cast<int>(static_cast<unsigned char>(total));
  }

  // Byte i of block `peer` in the output of `rank`; 0 where nothing is written.
  int expected(int rank, int peer, std::size_t i) const {
    const Call& call = case_.call;
    const std::size_t block = call.block_bytes;
    const bool is_root = rank == call.root;
    const auto sum = [&](std::size_t offset) { return sum_of_first(call.size, offset); };
    switch (call.kind) {
      case Kind::bcast:
        return peer == 0 && !is_root ? value(call.root, i) : 0;
      case Kind::reduce:
        return peer == 0 && is_root ? sum(i) : 0;
      case Kind::allreduce:
        return peer == 0 ? sum(i) : 0;
      case Kind::reduce_scatter:
      case Kind::reduce_scatter_block:
        return peer == 0 ? sum(at(rank) * block + i) : 0;
      case Kind::allgather:
      case Kind::allgatherv:
        return value(peer, (case_.in_place ? at(peer) * block : 0) + i);
      case Kind::gather:
        return is_root && !(case_.in_place && peer == rank) ? value(peer, i) : 0;
      case Kind::scatter:
        return peer == 0 && !(case_.in_place && is_root) ? value(call.root, at(rank) * block + i)
                                                         : 0;
      case Kind::alltoall:
        return value(peer, at(rank) * block + i);
      case Kind::scan:
        return peer == 0 ? sum_of_first(rank + 1, i) : 0;
      case Kind::exscan:
        return peer == 0 ? sum_of_first(rank, i) : 0;
      default:  // those that go by pairs have no plan
        return -1;
    }
  }

  void fill(int rank, std::size_t chunk) {
    for (const Move& move : plan_.fills(rank, case_.in_place, chunk)) {
      ASSERT_EQ(rank, move.peer) << name(case_);
      ASSERT_LE(move.theirs_bytes + move.length_bytes, case_.slot_bytes) << name(case_);
      ASSERT_LE(move.own_bytes + move.length_bytes, in_[at(rank)].size()) << name(case_);
      std::memcpy(slots_[at(rank)].data() + move.theirs_bytes,
                  in_[at(rank)].data() + move.own_bytes, move.length_bytes);
    }
  }
  void reduce(int rank, std::size_t chunk) {
    const Share share = plan_.share(rank, chunk);
    ASSERT_LE(share.result_bytes + share.length_bytes, case_.slot_bytes) << name(case_);
    for (std::size_t i = 0; i < share.length_bytes; ++i) {
      unsigned total = 0;
      for (int source = 0; source < plan_.sources(rank); ++source)
        total += slots_[at(source)][share.source_bytes + i];
      slots_[at(rank)][share.result_bytes + i] = static_cast<unsigned char>(total);
    }
  }
  void pull(int rank, std::size_t chunk) {
    for (const Move& move : plan_.pulls(rank, case_.in_place, chunk)) {
      ASSERT_LE(move.theirs_bytes + move.length_bytes, case_.slot_bytes) << name(case_);
      ASSERT_LE(move.own_bytes + move.length_bytes, out_[at(rank)].size()) << name(case_);
      std::memcpy(out_[at(rank)].data() + move.own_bytes,
                  slots_[at(move.peer)].data() + move.theirs_bytes, move.length_bytes);
    }
  }

  Case case_;
  Plan plan_;
  std::vector<Bytes> in_;
  std::vector<Bytes> out_;
  std::vector<Bytes> slots_;
};

// Whatever the kind, what a rank has for another one lies inside what it puts in, and what it gets
// from different ranks lies side by side.
TEST(Geometry, blocks_lie_within_their_ends) {
  for (auto number = static_cast<std::uint32_t>(Kind::bcast); !goes_by_pairs(Kind{number});
       ++number) {
    const Kind kind{number};
    Call call{.kind = kind, .size = 3, .root = 1, .block_bytes = 8};
    const bool may_differ = kind == Kind::allgatherv || kind == Kind::reduce_scatter;
    if (may_differ) call.blocks_bytes = {8, 0, 5};
    const Geometry geometry(call);
    for (int to = 0; to < call.size; ++to) {
      std::size_t got_bytes = 0;
      for (int from = 0; from < call.size; ++from) {
        if (!geometry.moves(from, to)) continue;
        const std::size_t length_bytes = geometry.length(from, to);
        EXPECT_LE(geometry.place_in(to) + length_bytes,
                  geometry.contribution(from, false).length_bytes);
        EXPECT_EQ(geometry.place_out(from), geometry.pattern().blocks_out ? got_bytes : 0);
        got_bytes = geometry.pattern().blocks_out ? got_bytes + length_bytes : length_bytes;
      }
      EXPECT_EQ(geometry.result(to, false).length_bytes, got_bytes) << number << " " << to;
    }
  }
}

TEST(Geometry, even_shares_are_whole_granules_and_cover_all) {
  for (const std::size_t bytes : {0, 1, 255, 256, 257, 1000, 3072}) {
    std::size_t next = 0;
    for (int number = 0; number < 5; ++number) {
      const Range share = even_share(bytes, number, 5, 256);
      EXPECT_EQ(share.first_bytes, next);
      next += share.length_bytes;
      EXPECT_TRUE(next == bytes || share.length_bytes % 256 == 0);
    }
    EXPECT_EQ(next, bytes);
  }
}

TEST(NodePlan, every_collective_in_chunks) {
  for (Kind kind : {Kind::bcast, Kind::reduce, Kind::allreduce, Kind::allgather, Kind::alltoall,
                    Kind::gather, Kind::scatter, Kind::reduce_scatter_block, Kind::reduce_scatter,
                    Kind::allgatherv, Kind::scan, Kind::exscan}) {
    const bool reduces = kind == Kind::reduce || kind == Kind::allreduce ||
                         kind == Kind::reduce_scatter_block || kind == Kind::reduce_scatter ||
                         kind == Kind::scan || kind == Kind::exscan;
    const bool may_be_in_place = kind == Kind::allgather || kind == Kind::allgatherv ||
                                 kind == Kind::gather || kind == Kind::scatter;
    for (int size : {2, 3, 5, 8}) {
      for (std::size_t block : {1, 255, 256, 257, 4096, 10001}) {
        for (int root : {0, size - 1}) {
          for (bool in_place : {false, true}) {
            if (in_place && !may_be_in_place) continue;
            Call call{.kind = kind, .size = size, .root = root, .block_bytes = block};
            if (reduces) call.op = device::ReduceOp::sum;
            call.one_shot_bytes = 256;
            World world({call, std::size_t{4096}, in_place});
            world.run();
            if (HasFatalFailure()) return;
            world.check();
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(NodePlan, blocks_that_differ) {
  const std::vector<std::vector<std::size_t>> all_blocks = {
      {300, 0}, {0, 5000}, {1, 2000, 257}, {0, 0, 9999, 1}, {256, 255, 4096, 0, 10001}};
  for (const auto& blocks : all_blocks) {
    for (Kind kind : {Kind::reduce_scatter, Kind::allgatherv}) {
      for (bool in_place : {false, true}) {
        if (in_place && kind == Kind::reduce_scatter) continue;  // any other buffer to a plan
        Call call{.kind = kind, .size = static_cast<int>(blocks.size())};
        call.block_bytes = *std::ranges::max_element(blocks);
        call.blocks_bytes = blocks;
        if (kind == Kind::reduce_scatter) call.op = device::ReduceOp::sum;
        World world({call, std::size_t{4096}, in_place});
        world.run();
        if (HasFatalFailure()) return;
        world.check_uneven();
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(NodePlan, shares_cover_a_chunk_once_and_start_aligned) {
  for (int size : {2, 3, 7}) {
    for (std::size_t bytes : {1, 300, 4096, 1000000}) {
      const Plan plan({.kind = Kind::allreduce,
                       .size = size,
                       .block_bytes = bytes,
                       .op = device::ReduceOp::sum,
                       .element = device::Element::float32},
                      std::size_t{16} << 20);
      ASSERT_EQ(1U, plan.chunks());
      std::size_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share share = plan.share(rank, 0);
        EXPECT_EQ(next, share.source_bytes);
        EXPECT_TRUE(share.length_bytes == 0 || share.source_bytes % 256 == 0);
        next += share.length_bytes;
      }
      EXPECT_EQ(bytes, next);
    }
  }
}

// Slots of that size are as good as any longer ones, and those of half of it are not.
TEST(NodePlan, slots_need_no_more_room) {
  for (const Kind kind : {Kind::bcast, Kind::alltoall, Kind::allreduce, Kind::reduce_scatter}) {
    for (const std::size_t bytes :
         {std::size_t{100}, std::size_t{3} << 20, std::size_t{90} << 20}) {
      const bool reduces = kind == Kind::allreduce || kind == Kind::reduce_scatter;
      const Call call{.kind = kind,
                      .size = 3,
                      .block_bytes = bytes,
                      .op = reduces ? device::ReduceOp::sum : device::ReduceOp::none,
                      .element = reduces ? device::Element::float32 : device::Element::none};
      const std::size_t enough_bytes = Plan::slot_bytes_max(call);
      EXPECT_EQ(Plan(call, std::size_t{1} << 30).chunks(), Plan(call, enough_bytes).chunks());
      if (enough_bytes == Plan::slot_bytes_min(call.size)) continue;
      EXPECT_LT(Plan(call, enough_bytes).chunks(), Plan(call, enough_bytes / 2).chunks());
    }
  }
}

// Elements of 6 and 12 bytes: no chunk and no share ends inside one.
TEST(NodePlan, elements_stay_whole) {
  for (const auto element : {device::Element::int16_int32, device::Element::float64_int32}) {
    const std::size_t bytes = device::element_bytes(element);
    for (Kind kind : {Kind::reduce, Kind::allreduce, Kind::reduce_scatter_block}) {
      for (int size : {2, 3, 7}) {
        const std::size_t slot_bytes = Plan::slot_bytes_min(size);
        const Plan plan({.kind = kind,
                         .size = size,
                         .block_bytes = bytes * 10007,
                         .op = device::ReduceOp::minloc,
                         .element = element},
                        slot_bytes);
        std::size_t total = 0;
        for (std::size_t chunk = 0; chunk < plan.chunks(); ++chunk) {
          EXPECT_EQ(0U, plan.first_bytes(chunk) % bytes);
          for (int rank = 0; rank < size; ++rank) {
            const Share share = plan.share(rank, chunk);
            EXPECT_TRUE(share.length_bytes == 0 || share.source_bytes % 256 == 0);
            EXPECT_TRUE(share.length_bytes == 0 || share.result_bytes % 256 == 0);
            EXPECT_EQ(0U, share.length_bytes % bytes);
            EXPECT_LE(share.result_bytes + share.length_bytes, slot_bytes);
            if (rank == 0 || kind != Kind::reduce_scatter_block) total += share.length_bytes;
          }
        }
        EXPECT_EQ(bytes * 10007, total);
      }
    }
  }
}

TEST(NodePlan, large_messages_are_cut_so_that_steps_overlap) {
  const Plan plan({.kind = Kind::bcast, .size = 2, .block_bytes = std::size_t{256} << 20},
                  std::size_t{16} << 20);
  EXPECT_GE(plan.chunks(), 16U);
  const Plan medium({.kind = Kind::bcast, .size = 2, .block_bytes = std::size_t{12} << 20},
                    std::size_t{16} << 20);
  EXPECT_EQ(4U, medium.chunks());
}

}  // namespace
}  // namespace accord::node
