// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives straight between users' buffers: every kind, in place and not, gives what it should,
// and all ranks go the same way.
#include "coll/intra/direct_exchange.h"

#include "node_collective.h"

namespace accord::test {
namespace {

// In place, some calls write what peers may still want to read.
bool can_be_direct(const Case& c) {
  if (!c.in_place) return true;
  switch (c.call.kind) {
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
    case Kind::alltoall:
    case Kind::scan:
    case Kind::exscan:
      return false;
    default:
      return true;
  }
}

class KindTest : public testing::TestWithParam<Kind> {};

TEST_P(KindTest, IsRightFromTheFirstCallOnAndDirectInTheEnd) {
  for (const int size : {2, 3, 5}) {
    NodeWorld world(size, kRegionBytes, 7u * static_cast<unsigned>(size));
    for (const std::size_t block_bytes : {1, 255, 5000, 40000}) {
      for (const bool in_place : {false, true}) {
        for (const std::size_t one_shot_bytes : {0, 100000}) {
          const Case c = make_case(GetParam(), size, block_bytes, in_place,
                                   static_cast<int>(block_bytes) % size, one_shot_bytes);
          if (c.call.op == device::ReduceOp::none && one_shot_bytes != 0) continue;
          if (in_place && GetParam() == Kind::bcast) continue;
          Collective collective(world, c);
          std::string way;
          for (int round = 0; round < 6; ++round) way = collective.run();
          EXPECT_EQ(can_be_direct(c) ? kDirect : "node", way) << name(c);
          if (HasFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KindTest,
                         testing::Values(Kind::bcast, Kind::reduce, Kind::allreduce,
                                         Kind::allgather, Kind::alltoall, Kind::gather,
                                         Kind::scatter, Kind::reduce_scatter_block, Kind::scan,
                                         Kind::exscan, Kind::reduce_scatter, Kind::allgatherv));

class SpreadTest : public testing::TestWithParam<Kind> {};

// Regions from the least on, so that a message takes one piece or many, and slots are used again
// and again; other calls in between use the same regions.
TEST_P(SpreadTest, IsRightInPiecesAndWithOtherCallsInBetween) {
  for (const int size : {2, 3, 5}) {
    const std::size_t least_bytes =
        node::Group::kSlots * node::Plan::slot_bytes_min(size) + 3 * 1024;
    for (const std::size_t region_bytes : {least_bytes, kRegionBytes}) {
      NodeWorld world(size, region_bytes, 11u * static_cast<unsigned>(size));
      Collective through_regions(world, make_case(Kind::allgather, size, 9000),
                                 device::MemoryKind::pinned);
      for (const std::size_t block_bytes : {1, 257, 5000, 60000}) {
        for (const bool in_place : {false, true}) {
          Case c = make_case(GetParam(), size, block_bytes, in_place, size - 1);
          c.call.spread_bytes = 1;
          Collective collective(world, c);
          std::string way;
          const std::uint64_t before = coll::DirectExchange::counters().spread;
          for (int round = 0; round < 6; ++round) {
            way = collective.run();
            if (round % 2 == 0) {
              EXPECT_EQ("node", through_regions.run());
            }
          }
          EXPECT_EQ(can_be_direct(c) ? kDirect : "node", way) << name(c);
          EXPECT_EQ(coll::DirectExchange::counters().spread > before, can_be_direct(c)) << name(c);
          if (HasFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpreadTest,
                         testing::Values(Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block,
                                         Kind::reduce_scatter));

// The result of a rank would lie over what others have yet to read.
TEST(DirectExchange, DifferentBlocksInPlaceGoThroughTheRegions) {
  NodeWorld world(2, kRegionBytes, 15);
  const std::vector<std::size_t> blocks{1000, 70000};
  constexpr std::size_t kBytes = 71000;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<coll::CollArgs> views(2);
  for (int rank = 0; rank < 2; ++rank) {
    coll::CollArgs& view = views[static_cast<std::size_t>(rank)];
    view.exchange = make_case(Kind::reduce_scatter, 2, blocks[1]).call;
    view.exchange->blocks_bytes = blocks;
    view.exchange->spread_bytes = 1;
    view.ways.direct = true;
    view.rank = rank;
    buffers.push_back(std::make_unique<Buffer>(kBytes));
    view.in = buffers.back()->end(kBytes);
    view.out = buffers.back()->end(blocks[static_cast<std::size_t>(rank)]);
  }
  for (int round = 0; round < 4; ++round) {
    for (const auto& buffer : buffers) {
      Bytes bytes(kBytes);
      for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = value(3, round, i);
      buffer->write(bytes);
    }
    EXPECT_EQ("node", world.run(views, [](int) {}));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const Bytes got = buffers[rank]->read(blocks[rank]);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto mine = static_cast<int>(value(3, round, rank * blocks[0] + i));
        ASSERT_EQ(2 * mine % 256, static_cast<int>(got[i])) << "rank " << rank << " byte " << i;
      }
    }
  }
}

TEST(DirectExchange, OneHostBufferAndAllGoThroughTheRegions) {
  NodeWorld world(3, kRegionBytes, 4);
  Collective collective(world, make_case(Kind::allgather, 3, 3000), device::MemoryKind::pinned);
  for (int round = 0; round < 6; ++round) EXPECT_EQ("node", collective.run());
}

// Against MPI's rules, but all the same: in place means shares, and one rank cannot decide that.
TEST(DirectExchange, InPlaceOnSomeRanksOnlyGoesThroughTheRegions) {
  NodeWorld world(2, kRegionBytes, 14);
  constexpr std::size_t kBytes = 4096;
  Buffer mine(kBytes);
  Buffer yours(kBytes);
  Buffer sum(kBytes);
  std::vector<coll::CollArgs> views(2);
  for (coll::CollArgs& view : views) {
    view.exchange = make_case(Kind::allreduce, 2, kBytes, false, 0, 2 * kBytes).call;
    view.ways.direct = true;
  }
  views[1].rank = 1;
  views[0].in = views[0].out = mine.end(kBytes);
  views[1].in = yours.end(kBytes);
  views[1].out = sum.end(kBytes);
  for (int round = 0; round < 6; ++round) {
    mine.write(Bytes(kBytes, 3));
    yours.write(Bytes(kBytes, 4));
    EXPECT_EQ("node", world.run(views, [](int) {}));
    EXPECT_EQ(Bytes(kBytes, 7), mine.read(kBytes));
    EXPECT_EQ(Bytes(kBytes, 7), sum.read(kBytes));
  }
}

// The others, who are in that call still, would take what it once said in the same place for a part
// of theirs.
TEST(DirectExchange, ARankThatHasLeftACallSaysNothingOfTheNext) {
  NodeWorld world(2, kRegionBytes, 16);
  constexpr std::size_t kBytes = 1000;
  Buffer lent(kBytes);
  Buffer gathered(2 * kBytes);
  std::vector<coll::CollArgs> views(2);
  for (int rank = 0; rank < 2; ++rank) {
    coll::CollArgs& view = views[static_cast<std::size_t>(rank)];
    view.exchange = make_case(Kind::gather, 2, kBytes).call;
    view.ways.direct = true;
    view.rank = rank;
    view.in_place = rank == 0;
  }
  views[1].in = lent.end(kBytes);
  views[0].out = gathered.end(2 * kBytes);
  for (int round = 0; round < 6; ++round) world.run(views, [](int) {});

  bool done = false;
  coll::NodeExchange left(world.shared_group(1), views[1]);
  while (!done) left.stop(done);
  coll::NodeExchange next(world.shared_group(1), views[1]);
  EXPECT_FALSE(next.advance(done).ok());
  coll::NodeExchange root(world.shared_group(0), views[0]);
  Status status;
  bool root_done = false;
  for (int polls = 0; polls < 1000 && status.ok() && !root_done; ++polls)
    status = root.advance(root_done);
  EXPECT_FALSE(status.ok());
  for (coll::NodeExchange* one : {&next, &root})
    for (done = false; !done;) one->stop(done);
}

// A peer that only sends runs ahead as far as the regions let it; what it said of its earlier calls
// must stay until the root has read it.
TEST(DirectExchange, ARankAheadKeepsItsRecords) {
  NodeWorld world(2, kRegionBytes, 13);
  constexpr std::size_t kBytes = 1000;
  constexpr unsigned kAhead = node::Board::kArrivals;
  Buffer lent(kBytes);
  Buffer gathered(2 * kBytes);
  std::vector<std::unique_ptr<Buffer>> ahead;
  const auto view = [&](int rank, const Buffer* source) {
    coll::CollArgs made;
    made.exchange = make_case(Kind::gather, 2, kBytes).call;
    made.ways.direct = true;
    made.rank = rank;
    made.in_place = rank == 0;
    if (rank == 1) made.in = source->end(kBytes);
    if (rank == 0) made.out = gathered.end(2 * kBytes);
    return made;
  };
  for (int round = 0; round < 4; ++round) world.run({view(0, nullptr), view(1, &lent)}, [](int) {});
  lent.write(Bytes(kBytes, 99));

  std::vector<coll::CollArgs> views;
  views.reserve(2 * (kAhead + 1));
  std::optional<coll::NodeExchange> sender;
  bool done = false;
  for (unsigned call = 0; call <= kAhead; ++call) {
    ahead.push_back(std::make_unique<Buffer>(kBytes, device::MemoryKind::pinned));
    ahead.back()->write(Bytes(kBytes, static_cast<unsigned char>(call)));
    const Buffer* const source = call < kAhead ? ahead.back().get() : &lent;
    sender.emplace(world.shared_group(1), views.emplace_back(view(1, source)));
    done = false;
    for (int polls = 0; polls < 10 && !done; ++polls) ASSERT_OK(sender->advance(done));
    ASSERT_EQ(call < kAhead, done);
  }
  for (unsigned call = 0; call <= kAhead; ++call) {
    coll::NodeExchange root(world.shared_group(0), views.emplace_back(view(0, nullptr)));
    bool root_done = false;
    for (int polls = 0; polls < 1000 && !root_done; ++polls) {
      ASSERT_OK(root.advance(root_done));
      if (!done) ASSERT_OK(sender->advance(done));
    }
    ASSERT_TRUE(root_done);
    EXPECT_EQ(call < kAhead ? call : 99u, static_cast<unsigned>(gathered.read(2 * kBytes)[kBytes]));
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace accord::test
