// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which collectives a collective library can do, and what is asked of it for those that it has no
// function for: carried out here on plain memory, message by message.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "coll/library/plan.h"
#include "support.h"

namespace accord::test {
namespace {

using coll::CclPlan;
using device::Element;
using device::ReduceOp;
using node::Call;
using node::Kind;
using Bytes = std::vector<std::byte>;

ccl::Library& library(const char* name) {
  ccl::Library& found = *ccl::find(name);
  EXPECT_OK(found.open());
  return found;
}

Call reduction(Kind kind, ReduceOp op, Element element) {
  return {.kind = kind, .size = 2, .block_bytes = 64, .op = op, .element = element};
}

TEST(ccl_plan, what_a_library_cannot_do) {
  const ccl::Library& nccl = library("nccl");
  const auto can = [&](ReduceOp op, Element element) {
    return CclPlan::exists(nccl, reduction(Kind::allreduce, op, element));
  };
  EXPECT_TRUE(can(ReduceOp::sum, Element::float32));
  EXPECT_TRUE(can(ReduceOp::max, Element::int64));
  EXPECT_TRUE(can(ReduceOp::prod, Element::bfloat16));
  EXPECT_TRUE(can(ReduceOp::sum, Element::complex128));
  EXPECT_FALSE(can(ReduceOp::prod, Element::complex64));
  EXPECT_FALSE(can(ReduceOp::sum, Element::int16));
  EXPECT_FALSE(can(ReduceOp::band, Element::int32));
  EXPECT_FALSE(can(ReduceOp::land, Element::int32));
  EXPECT_FALSE(can(ReduceOp::minloc, Element::float32_int32));
  EXPECT_FALSE(CclPlan::exists(nccl, reduction(Kind::scan, ReduceOp::sum, Element::float32)));
  for (const Kind kind : {Kind::bcast, Kind::allgather, Kind::alltoall, Kind::gather, Kind::scatter,
                          Kind::allgatherv, Kind::alltoallw})
    EXPECT_TRUE(CclPlan::exists(nccl, {.kind = kind, .size = 2, .block_bytes = 3}));
}

TEST(ccl_plan, a_library_of_one_function) {
  const ccl::Library& example = library("example");
  EXPECT_TRUE(
      CclPlan::exists(example, reduction(Kind::allreduce, ReduceOp::sum, Element::float32)));
  EXPECT_TRUE(
      CclPlan::exists(example, reduction(Kind::allreduce, ReduceOp::sum, Element::complex64)));
  EXPECT_FALSE(CclPlan::exists(example, reduction(Kind::reduce, ReduceOp::sum, Element::float32)));
  EXPECT_FALSE(CclPlan::exists(example, {.kind = Kind::alltoall, .size = 2, .block_bytes = 4}));
}

// Bits are moved as numbers, where they are a whole number of them.
TEST(ccl_plan, a_library_without_bytes) {
  const ccl::Library& hccl = library("hccl");
  const auto can = [&](const Call& call) { return CclPlan::exists(hccl, call); };
  const Call whole{.kind = Kind::bcast, .size = 2, .block_bytes = 64};
  EXPECT_TRUE(can(whole));
  EXPECT_FALSE(can({.kind = Kind::bcast, .size = 2, .block_bytes = 63}));
  EXPECT_TRUE(can({.kind = Kind::allgatherv, .size = 2, .block_bytes = 8, .blocks_bytes = {8, 4}}));
  EXPECT_FALSE(
      can({.kind = Kind::allgatherv, .size = 2, .block_bytes = 8, .blocks_bytes = {8, 6}}));
  EXPECT_FALSE(can({.kind = Kind::alltoallv, .size = 2}));
  EXPECT_TRUE(can(reduction(Kind::allreduce, ReduceOp::min, Element::bfloat16)));
  EXPECT_FALSE(can(reduction(Kind::allreduce, ReduceOp::prod, Element::float32)));
  EXPECT_FALSE(can(reduction(Kind::allreduce, ReduceOp::sum, Element::int32)));
  std::byte buffer[64];
  const CclPlan plan(hccl, whole, 0, false);
  EXPECT_EQ(plan.alignment_bytes(), 4u);
  const auto works = plan.works(buffer, nullptr);
  ASSERT_EQ(works.size(), 1u);
  EXPECT_EQ(works[0].type, ACCORD_CCL_FLOAT32);
  EXPECT_EQ(works[0].count, 16u);
}

TEST(ccl_plan, a_sum_of_complex_numbers_is_that_of_twice_as_many_reals) {
  const Call call = reduction(Kind::allreduce, ReduceOp::sum, Element::complex128);
  std::byte buffer[64];
  const auto works = CclPlan(library("nccl"), call, 0, false).works(buffer, buffer);
  ASSERT_EQ(works.size(), 1u);
  EXPECT_EQ(works[0].type, ACCORD_CCL_FLOAT64);
  EXPECT_EQ(works[0].count, 8u);
}

TEST(ccl_plan, the_librarys_own_alltoall_where_it_has_one) {
  const Call call{.kind = Kind::alltoall, .size = 2, .block_bytes = 4};
  std::byte in[8];
  std::byte out[8];
  const auto composed = CclPlan(library("nccl"), call, 0, false).works(in, out);
  EXPECT_EQ(composed.size(), 4u);
  const auto whole = CclPlan(library("rccl"), call, 0, false).works(in, out);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].call, ACCORD_CCL_ALLTOALL);
  EXPECT_EQ(whole[0].count, 4u);
}

// A root in place has its block where it is to stay, and the library is told so.
TEST(ccl_plan, the_librarys_own_gather_and_scatter_where_it_has_them) {
  const Call gather{.kind = Kind::gather, .size = 3, .root = 1, .block_bytes = 4};
  const Call scatter{.kind = Kind::scatter, .size = 3, .root = 1, .block_bytes = 4};
  std::byte block[4];
  std::byte blocks[12];
  const auto works_of = [&](const Call& call, int rank, bool in_place, std::byte* in,
                            std::byte* out) {
    const auto works = CclPlan(library("rccl"), call, rank, in_place).works(in, out);
    EXPECT_EQ(works.size(), 1u);
    return works.at(0);
  };
  for (const bool in_place : {false, true}) {
    ccl::Work work = works_of(gather, 1, in_place, in_place ? nullptr : block, blocks);
    EXPECT_EQ(work.call, ACCORD_CCL_GATHER);
    EXPECT_EQ(work.count, 4u);
    EXPECT_EQ(work.peer, 1);
    EXPECT_EQ(work.send, in_place ? blocks + 4 : block);
    EXPECT_EQ(work.recv, blocks);
    work = works_of(scatter, 1, in_place, blocks, in_place ? nullptr : block);
    EXPECT_EQ(work.call, ACCORD_CCL_SCATTER);
    EXPECT_EQ(work.send, blocks);
    EXPECT_EQ(work.recv, in_place ? blocks + 4 : block);
    work = works_of(gather, 0, in_place, block, nullptr);
    EXPECT_EQ(work.send, block);
    EXPECT_EQ(work.recv, nullptr);
    work = works_of(scatter, 2, in_place, nullptr, block);
    EXPECT_EQ(work.send, nullptr);
    EXPECT_EQ(work.recv, block);
  }
}

// One rank's side of a call: what is read and written, and what is asked of the library.
struct Side {
  Bytes in;
  Bytes out;
  std::vector<ccl::Work> works;
};

// Byte i of what `rank` gives.
std::byte given(int rank, std::size_t i) {
  return static_cast<std::byte>(static_cast<unsigned>(rank) * 50 + i + 1);
}

std::vector<Side> sides_of(const Call& call, bool in_place,
                           const ccl::Library& by = library("nccl")) {
  std::vector<Side> sides(static_cast<std::size_t>(call.size));
  for (int rank = 0; rank < call.size; ++rank) {
    Side& side = sides[static_cast<std::size_t>(rank)];
    const CclPlan plan(by, call, rank, in_place);
    side.in.resize(plan.in().length_bytes);
    side.out.resize(plan.out().length_bytes, std::byte{0xee});
    for (std::size_t i = 0; i < side.in.size(); ++i) side.in[i] = given(rank, i);
    side.works = plan.works(side.in.empty() ? nullptr : side.in.data(),
                            side.out.empty() ? nullptr : side.out.data());
  }
  return sides;
}

// Every message that is sent is received, in order between each two ranks.
void exchange(std::vector<Side>& sides) {
  for (std::size_t from = 0; from < sides.size(); ++from) {
    for (std::size_t to = 0; to < sides.size(); ++to) {
      std::vector<ccl::Work> sent;
      std::vector<ccl::Work> received;
      std::ranges::copy_if(sides[from].works, std::back_inserter(sent), [&](const ccl::Work& work) {
        return work.call == ACCORD_CCL_SEND && work.peer == static_cast<int>(to);
      });
      std::ranges::copy_if(
          sides[to].works, std::back_inserter(received), [&](const ccl::Work& work) {
            return work.call == ACCORD_CCL_RECV && work.peer == static_cast<int>(from);
          });
      ASSERT_EQ(sent.size(), received.size()) << from << " to " << to;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        ASSERT_EQ(sent[i].count, received[i].count) << from << " to " << to;
        std::memcpy(received[i].recv, sent[i].send, sent[i].count);
      }
    }
  }
}

TEST(ccl_plan, gather_and_scatter_of_messages) {
  for (const bool in_place : {false, true}) {
    const Call gather{.kind = Kind::gather, .size = 3, .root = 1, .block_bytes = 5};
    auto sides = sides_of(gather, in_place);
    exchange(sides);
    for (std::size_t i = 0; i < 15; ++i) {
      const int rank = static_cast<int>(i / 5);
      EXPECT_EQ(sides[1].out[i], in_place && rank == 1 ? std::byte{0xee} : given(rank, i % 5)) << i;
    }
    const Call scatter{.kind = Kind::scatter, .size = 3, .root = 2, .block_bytes = 5};
    sides = sides_of(scatter, in_place);
    exchange(sides);
    EXPECT_EQ(sides[2].out.size(), in_place ? 0u : 5u);
    for (std::size_t rank = 0; rank < 3; ++rank)
      for (std::size_t i = 0; i < sides[rank].out.size(); ++i)
        EXPECT_EQ(sides[rank].out[i], given(2, rank * 5 + i));
  }
}

TEST(ccl_plan, alltoall_of_messages) {
  auto sides = sides_of({.kind = Kind::alltoall, .size = 4, .block_bytes = 3}, false);
  exchange(sides);
  for (std::size_t rank = 0; rank < 4; ++rank)
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(sides[rank].out[i], given(static_cast<int>(i / 3), rank * 3 + i % 3));
}

// A user's library may have nothing else.
ccl::Library& library_of_messages() {
  static const accord_ccl_plugin plugin = [] {
    accord_ccl_plugin made{};
    made.name = "messages";
    made.open = [](const char*, void** opened, accord_ccl_error*) {
      static int any;
      *opened = &any;
      return 0;
    };
    made.describe = [](void*, accord_ccl_description*) {};
    made.supports = [](void*, accord_ccl_call call, accord_ccl_type, accord_ccl_op) {
      return call == ACCORD_CCL_SEND || call == ACCORD_CCL_RECV ? 1 : 0;
    };
    return made;
  }();
  static ccl::Library made({.plugin = &plugin, .paths = {nullptr}});
  EXPECT_OK(made.open());
  return made;
}

TEST(ccl_plan, a_library_of_messages_alone) {
  const Call bcast{.kind = Kind::bcast, .size = 3, .root = 1, .block_bytes = 5};
  ASSERT_TRUE(CclPlan::exists(library_of_messages(), bcast));
  auto sides = sides_of(bcast, false, library_of_messages());
  exchange(sides);
  for (const std::size_t rank : {0, 2})
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(sides[rank].out[i], given(1, i));
  for (const bool in_place : {false, true}) {
    sides = sides_of({.kind = Kind::allgather, .size = 3, .block_bytes = 5}, in_place,
                     library_of_messages());
    exchange(sides);
    for (int rank = 0; rank < 3; ++rank) {
      for (std::size_t i = 0; i < 15; ++i) {
        const int from = static_cast<int>(i / 5);
        EXPECT_EQ(sides[static_cast<std::size_t>(rank)].out[i],
                  in_place && from == rank ? std::byte{0xee} : given(from, i % 5));
      }
    }
  }
}

TEST(ccl_plan, blocks_that_differ) {
  for (const bool in_place : {false, true}) {
    auto sides =
        sides_of({.kind = Kind::allgatherv, .size = 3, .block_bytes = 4, .blocks_bytes = {4, 0, 2}},
                 in_place);
    exchange(sides);
    for (int rank = 0; rank < 3; ++rank) {
      const Bytes& out = sides[static_cast<std::size_t>(rank)].out;
      ASSERT_EQ(out.size(), 6u);
      for (std::size_t i = 0; i < 6; ++i) {
        const int from = i < 4 ? 0 : 2;
        const bool stays = in_place && rank == from;
        EXPECT_EQ(out[i], stays ? std::byte{0xee} : given(from, i % 4)) << rank << " " << i;
      }
    }
  }
}

TEST(ccl_plan, a_reduction_a_block_where_blocks_differ) {
  const Call call{.kind = Kind::reduce_scatter,
                  .size = 3,
                  .block_bytes = 16,
                  .blocks_bytes = {8, 0, 16},
                  .op = ReduceOp::sum,
                  .element = Element::float32};
  const auto sides = sides_of(call, false);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto& [in, out, works] = sides[rank];
    ASSERT_EQ(works.size(), 2u);
    EXPECT_EQ(works[0].peer, 0);
    EXPECT_EQ(works[0].count, 2u);
    EXPECT_EQ(works[1].peer, 2);
    EXPECT_EQ(works[1].count, 4u);
    EXPECT_EQ(works[1].send, in.data() + 8);
    EXPECT_EQ(works[1].recv, rank == 2 ? out.data() : nullptr);
  }
}

}  // namespace
}  // namespace accord::test
