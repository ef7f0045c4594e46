// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions spread by engines, carried out on plain memory as far ahead as ranks may be of each
// other: every byte of the result is right, nothing is put outside a region or over what has yet to
// be read. And how messages are cut.
#include "node/spread_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

namespace accord::node {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr unsigned char kUnset = 0xee;

// How far a rank gets before another has its turn.
enum class First { piece, call };

struct Case {
  Call call;
  std::size_t region_bytes;
  bool in_place;
  First first;
};

std::string name(const Case& c) {
  return "kind " + std::to_string(static_cast<int>(c.call.kind)) + " ranks " +
         std::to_string(c.call.size) + " root " + std::to_string(c.call.root) + " block " +
         std::to_string(c.call.block_bytes) + " region " + std::to_string(c.region_bytes) +
         (c.in_place ? " in place" : "") + " order " + std::to_string(static_cast<int>(c.first));
}

bool scatters(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block;
}

unsigned char value(int rank, std::size_t at) {
  return static_cast<unsigned char>(rank * 37 + static_cast<int>(at % 249) + 1);
}

// All ranks of one call. Reductions add bytes, which is what the sum of uint8 is.
class World {
 public:
  explicit World(const Case& c) : case_(c), blocks_(c.call.blocks_bytes) {
    if (blocks_.empty()) blocks_.assign(at(c.call.size), c.call.block_bytes);
    total_bytes_ = scatters(c.call.kind) ? std::accumulate(blocks_.begin(), blocks_.end(), 0ul)
                                         : c.call.block_bytes;
    for (int rank = 0; rank < c.call.size; ++rank) {
      plans_.emplace_back(c.call, rank, true);
      Bytes in(total_bytes_);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      in_.push_back(std::move(in));
      out_.emplace_back(total_bytes_, kUnset);
      regions_.emplace_back(c.region_bytes, kUnset);
    }
  }

  // The most pieces a rank has.
  std::size_t run() {
    std::vector<SpreadPlan> plans;
    std::size_t pieces = 0;
    for (int rank = 0; rank < case_.call.size; ++rank) {
      plans.emplace_back(plans_[at(rank)], rank, case_.region_bytes);
      pieces = std::max(pieces, plans.back().pieces());
    }
    const auto step = [&](int rank, std::size_t piece) {
      const SpreadPlan& plan = plans[at(rank)];
      if (piece >= plan.pieces()) return;
      if (piece == 0) fetch(plan, rank, piece);
      if (piece + 1 < plan.pieces()) fetch(plan, rank, piece + 1);
      reduce(plan, rank, piece);
    };
    for (std::size_t turn = 0; turn < pieces * plans.size(); ++turn) {
      const bool by_rank = case_.first == First::call;
      const std::size_t rank = by_rank ? turn / pieces : turn % plans.size();
      step(static_cast<int>(rank), by_rank ? turn % pieces : turn / plans.size());
    }
    return pieces;
  }

  void check() {
    for (int rank = 0; rank < case_.call.size; ++rank) {
      const bool scattered = scatters(case_.call.kind);
      const std::size_t first =
          scattered ? std::accumulate(blocks_.begin(), blocks_.begin() + rank, 0ul) : 0;
      std::size_t length = blocks_[at(rank)];
      if (case_.call.kind == Kind::reduce && rank != case_.call.root) length = 0;
      const Bytes& got = result(rank);
      for (std::size_t i = 0; i < length; ++i) {
        unsigned sum = 0;
        for (int from = 0; from < case_.call.size; ++from) sum += value(from, first + i);
        ASSERT_EQ(sum % 256, got[i]) << name(case_) << ": rank " << rank << " byte " << i;
      }
      for (std::size_t i = length; i < got.size() && !case_.in_place; ++i)
        ASSERT_EQ(kUnset, got[i]) << name(case_) << ": rank " << rank << " byte " << i;
    }
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  Bytes& result(int rank) { return case_.in_place ? in_[at(rank)] : out_[at(rank)]; }

  void fetch(const SpreadPlan& plan, int rank, std::size_t piece) {
    if (!plan.fetches()) return;
    const Share part = plan.part(piece);
    const std::size_t slot = plan.slot_bytes(piece);
    ASSERT_EQ(0u, slot % 256) << name(case_);
    ASSERT_LE(slot + part.length_bytes, case_.region_bytes) << name(case_);
    std::memcpy(regions_[at(rank)].data() + slot, in_[at(1 - rank)].data() + part.source_bytes,
                part.length_bytes);
  }

  void reduce(const SpreadPlan& plan, int rank, std::size_t piece) {
    const Share part = plan.part(piece);
    Bytes sum(part.length_bytes);
    for (std::size_t i = 0; i < part.length_bytes; ++i) {
      for (int sender = 0; sender < case_.call.size; ++sender) {
        const bool fetched = plan.fetches() && sender != rank;
        const unsigned char* const source = fetched ? &regions_[at(rank)][plan.slot_bytes(piece)]
                                                    : &in_[at(sender)][part.source_bytes];
        sum[i] = static_cast<unsigned char>(sum[i] + source[i]);
      }
    }
    for (const int target : plans_[at(rank)].targets())
      std::copy(sum.begin(), sum.end(),
                result(target).begin() + static_cast<std::ptrdiff_t>(part.result_bytes));
  }

  Case case_;
  std::vector<std::size_t> blocks_;
  std::size_t total_bytes_ = 0;
  std::vector<DirectPlan> plans_;
  std::vector<Bytes> in_;
  std::vector<Bytes> out_;
  std::vector<Bytes> regions_;
};

Call make_call(Kind kind, int size, std::size_t block_bytes, int root = 0) {
  return {.kind = kind,
          .size = size,
          .root = root,
          .block_bytes = block_bytes,
          .op = device::ReduceOp::sum,
          .element = device::Element::uint8,
          .spread_bytes = 1};
}

TEST(SpreadPlan, EveryByteIsReducedOnceWhateverIsAheadOfWhat) {
  std::size_t pieces_max = 0;
  for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block}) {
    for (const int size : {2, 3, 4, 5, 8}) {
      for (const std::size_t block_bytes : {1, 255, 256, 4000, 20000}) {
        for (const std::size_t region_bytes : {4096, 200000}) {
          for (const bool in_place : {false, true}) {
            for (const First first : {First::piece, First::call}) {
              if (in_place && scatters(kind)) continue;
              const Case c{make_call(kind, size, block_bytes, size - 1), region_bytes, in_place,
                           first};
              World world(c);
              pieces_max = std::max(pieces_max, world.run());
              world.check();
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(pieces_max, 4u);
}

TEST(SpreadPlan, BlocksMayDifferAndBeMissing) {
  for (const std::vector<std::size_t>& blocks :
       {std::vector<std::size_t>{30000, 0}, {1, 30000}, {30000, 700}, {0, 30000, 1}}) {
    Call call = make_call(Kind::reduce_scatter, static_cast<int>(blocks.size()), 30000);
    call.blocks_bytes = blocks;
    for (const First first : {First::piece, First::call}) {
      World world({call, 16384, false, first});
      EXPECT_EQ(blocks.size() == 2, world.run() > 2);
      world.check();
    }
  }
}

TEST(SpreadPlan, PartsAreWholeElements) {
  Call call = make_call(Kind::allreduce, 2, 12 * 3000);
  call.element = device::Element::float64_int32;
  call.op = device::ReduceOp::maxloc;
  for (int rank = 0; rank < 2; ++rank) {
    const SpreadPlan plan(DirectPlan(call, rank, true), rank, 16384);
    EXPECT_GT(plan.pieces(), 1u);
    for (std::size_t piece = 0; piece < plan.pieces(); ++piece) {
      EXPECT_EQ(0u, plan.part(piece).source_bytes % 12);
      EXPECT_EQ(0u, plan.part(piece).length_bytes % 12);
    }
  }
}

TEST(SpreadPlan, PiecesAreFewAndAlike) {
  constexpr std::size_t kMi = std::size_t{1} << 20;
  const auto pieces = [&](Kind kind, int size, std::size_t block_bytes) {
    const Call call = make_call(kind, size, block_bytes);
    const SpreadPlan plan(DirectPlan(call, 1, true), 1, 128 * kMi);
    const std::size_t first = plan.part(0).length_bytes;
    const std::size_t last = plan.part(plan.pieces() - 1).length_bytes;
    EXPECT_GE(last + plan.pieces() * 256, first);
    return plan.pieces();
  };
  EXPECT_EQ(1u, pieces(Kind::allreduce, 2, 47 * kMi));
  EXPECT_EQ(2u, pieces(Kind::allreduce, 2, 48 * kMi));
  // But for the line that is left.
  EXPECT_EQ(2u, pieces(Kind::allreduce, 2, 255 * kMi));
  EXPECT_EQ(3u, pieces(Kind::allreduce, 2, 256 * kMi));
  EXPECT_EQ(2u, pieces(Kind::reduce_scatter_block, 2, 64 * kMi));
  EXPECT_EQ(8u, pieces(Kind::reduce, 2, 256 * kMi));
  for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block})
    EXPECT_EQ(1u, pieces(kind, 4, 1024 * kMi));
}

TEST(SpreadPlan, OfAReduceAmongTwoTheRootMakesAll) {
  for (const int root : {0, 1}) {
    const Call call = make_call(Kind::reduce, 2, 5000, root);
    EXPECT_EQ(5000u, DirectPlan(call, 0, true).share(root).length_bytes);
    EXPECT_EQ(0u, DirectPlan(call, 0, true).share(1 - root).length_bytes);
  }
}

TEST(SpreadPlan, IsForLongReductionsAlone) {
  Call call = make_call(Kind::allreduce, 4, 1000);
  const auto form = [&] { return DirectPlan(call, 0, true).form(); };
  call.spread_bytes = 1001;
  EXPECT_EQ(DirectForm::shares, form());
  call.spread_bytes = 1000;
  EXPECT_EQ(DirectForm::spread, form());
  call.one_shot_bytes = 1000;
  EXPECT_EQ(DirectForm::own_result, form());
  call.kind = Kind::reduce_scatter_block;
  call.spread_bytes = 4000;
  EXPECT_EQ(DirectForm::spread, form());
  call.spread_bytes = 4001;
  EXPECT_EQ(DirectForm::own_result, form());
  call.kind = Kind::scan;
  call.spread_bytes = 1;
  EXPECT_EQ(DirectForm::own_result, form());
}

}  // namespace
}  // namespace accord::node
