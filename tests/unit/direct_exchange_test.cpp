// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives straight between users' buffers: every kind, in place and not, gives what it should;
// all ranks go the same way; nothing is opened once buffers repeat; memory that was freed is closed
// and never mistaken for what lies there now.
#include "core/direct_exchange.h"

#include <sys/resource.h>

#include <filesystem>

#include "node/handle_cache.h"
#include "node_world.h"

namespace accord::test {
namespace {

using node::Kind;

constexpr std::size_t kRegionBytes = 64 << 10;
const char* const kDirect = "node-direct";

unsigned char value(int rank, int round, std::size_t at) {
  return static_cast<unsigned char>(rank * 37 + round * 101 + static_cast<int>(at % 251) + 1);
}

struct Case {
  node::Call call;
  bool in_place = false;
};

std::string name(const Case& c) {
  return "kind " + std::to_string(static_cast<int>(c.call.kind)) + " ranks " +
         std::to_string(c.call.size) + " root " + std::to_string(c.call.root) + " block " +
         std::to_string(c.call.block_bytes) + " one shot " + std::to_string(c.call.one_shot_bytes) +
         (c.in_place ? " in place" : "");
}

Case make_case(Kind kind, int size, std::size_t block_bytes, bool in_place = false, int root = 0,
               std::size_t one_shot_bytes = 0) {
  Case made{{.kind = kind, .size = size, .root = root, .block_bytes = block_bytes}, in_place};
  if (kind == Kind::reduce || kind == Kind::allreduce || kind == Kind::reduce_scatter_block) {
    made.call.op = device::ReduceOp::sum;
    made.call.element = device::Element::uint8;
    made.call.one_shot_bytes = one_shot_bytes;
  }
  return made;
}

bool sends_blocks(Kind kind) {
  return kind == Kind::scatter || kind == Kind::alltoall || kind == Kind::reduce_scatter_block;
}
bool receives_blocks(Kind kind) {
  return kind == Kind::gather || kind == Kind::allgather || kind == Kind::alltoall;
}
bool is_rooted(Kind kind) {
  return kind == Kind::bcast || kind == Kind::scatter || kind == Kind::gather ||
         kind == Kind::reduce;
}

// Buffers of all ranks for one case, which is run again and again on them.
class Collective {
 public:
  Collective(NodeWorld& world, const Case& c, device::MemoryKind kind = device::MemoryKind::device)
      : world_(&world), case_(c) {
    const std::size_t all = c.call.block_bytes * static_cast<std::size_t>(c.call.size);
    for (int rank = 0; rank < c.call.size; ++rank) {
      in_.push_back(std::make_unique<Buffer>(all, rank == 0 ? kind : device::MemoryKind::device));
      out_.push_back(std::make_unique<Buffer>(all));
    }
  }

  Buffer& in(int rank) { return *in_[static_cast<std::size_t>(rank)]; }
  void renew_in(int rank) {
    const std::size_t size_bytes = in(rank).size_bytes();
    in_[static_cast<std::size_t>(rank)].reset();
    in_[static_cast<std::size_t>(rank)] = std::make_unique<Buffer>(size_bytes);
  }

  void move_to(NodeWorld& world) { world_ = &world; }

  std::string run() {
    ++round_;
    std::vector<core::Pipeline> views;
    for (int rank = 0; rank < case_.call.size; ++rank) {
      fill(rank);
      views.push_back(view(rank));
    }
    std::vector<Bytes> results(static_cast<std::size_t>(case_.call.size));
    const std::string way = world_->run(views, [&](int rank) {
      Buffer& out = *out_[static_cast<std::size_t>(rank)];
      results[static_cast<std::size_t>(rank)] = out.read(out.size_bytes());
      in(rank).write(Bytes(in(rank).size_bytes(), 0xdd));
      out.write(Bytes(out.size_bytes(), 0xbb));
    });
    for (int rank = 0; rank < case_.call.size; ++rank)
      check(rank, results[static_cast<std::size_t>(rank)]);
    return way;
  }

 private:
  // Where a rank contributes from the receive buffer.
  bool from_out(int rank) const {
    if (!case_.in_place) return false;
    return !is_rooted(case_.call.kind) ||
           (case_.call.kind == Kind::reduce && rank == case_.call.root);
  }

  void fill(int rank) {
    Bytes bytes(in(rank).size_bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(rank, round_, i);
    in(rank).write(bytes);
    if (!from_out(rank)) return;
    Buffer& out = *out_[static_cast<std::size_t>(rank)];
    if (case_.call.kind != Kind::allgather) return out.write(bytes);
    Bytes own(out.size_bytes(), 0xaa);
    std::copy_n(bytes.begin(), case_.call.block_bytes,
                own.begin() + static_cast<std::ptrdiff_t>(block(rank)));
    out.write(own);
  }

  core::Pipeline view(int rank) {
    const node::Call& call = case_.call;
    const bool is_root = rank == call.root;
    const bool root_sends = call.kind == Kind::bcast || call.kind == Kind::scatter;
    const bool root_receives = call.kind == Kind::gather || call.kind == Kind::reduce;
    const std::size_t all = call.block_bytes * static_cast<std::size_t>(call.size);
    const std::size_t out_bytes = receives_blocks(call.kind) ? all : call.block_bytes;
    const bool whole = sends_blocks(call.kind) || (case_.in_place && call.kind == Kind::allgather);
    core::Pipeline made;
    made.exchange = call;
    made.tries_direct = true;
    made.rank = rank;
    made.in_place =
        case_.in_place && (call.kind == Kind::allgather || (is_root && is_rooted(call.kind)));
    const Buffer& source = from_out(rank) ? *out_[static_cast<std::size_t>(rank)] : in(rank);
    const bool skips_in = call.kind == Kind::gather && made.in_place;
    if ((!root_sends || is_root) && !skips_in) made.in = source.end(whole ? all : call.block_bytes);
    const bool skips_out = call.kind == Kind::scatter && made.in_place;
    if ((!root_receives || is_root) && !skips_out && !(call.kind == Kind::bcast && is_root))
      made.out = out_[static_cast<std::size_t>(rank)]->end(out_bytes);
    return made;
  }

  void check(int rank, const Bytes& got) {
    const node::Call& call = case_.call;
    const bool is_root = rank == call.root;
    const bool root_receives = call.kind == Kind::gather || call.kind == Kind::reduce;
    if (root_receives && !is_root) return;
    if (is_root && (call.kind == Kind::bcast || (call.kind == Kind::scatter && case_.in_place)))
      return;
    const int blocks = receives_blocks(call.kind) ? call.size : 1;
    for (int peer = 0; peer < blocks; ++peer) {
      if (call.kind == Kind::gather && case_.in_place && peer == rank) continue;
      for (std::size_t i = 0; i < call.block_bytes; ++i) {
        ASSERT_EQ(static_cast<int>(expected(rank, peer, i)), static_cast<int>(got[block(peer) + i]))
            << name(case_) << ": round " << round_ << " rank " << rank << " block " << peer
            << " byte " << i;
      }
    }
  }

  unsigned char expected(int rank, int peer, std::size_t at) const {
    const node::Call& call = case_.call;
    unsigned char sum = 0;
    const std::size_t place = call.kind == Kind::reduce_scatter_block ? block(rank) + at : at;
    switch (call.kind) {
      case Kind::bcast:
        return value(call.root, round_, at);
      case Kind::scatter:
        return value(call.root, round_, block(rank) + at);
      case Kind::gather:
      case Kind::allgather:
        return value(peer, round_, at);
      case Kind::alltoall:
        return value(peer, round_, block(rank) + at);
      default:
        for (int source = 0; source < call.size; ++source)
          sum = static_cast<unsigned char>(sum + value(source, round_, place));
        return sum;
    }
  }

  std::size_t block(int rank) const {
    return static_cast<std::size_t>(rank) * case_.call.block_bytes;
  }

  NodeWorld* world_;
  Case case_;
  std::vector<std::unique_ptr<Buffer>> in_;
  std::vector<std::unique_ptr<Buffer>> out_;
  int round_ = 0;
};

// In place, some calls write what peers may still want to read.
bool can_be_direct(const Case& c) {
  if (!c.in_place) return true;
  switch (c.call.kind) {
    case Kind::alltoall:
    case Kind::reduce_scatter_block:
      return false;
    default:
      return true;
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
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
                                         Kind::scatter, Kind::reduce_scatter_block));

TEST(DirectExchange, OpensNothingAfterTheThirdCallOnTheSameBuffers) {
  NodeWorld world(3, kRegionBytes, 1);
  for (const Kind kind : {Kind::allreduce, Kind::alltoall, Kind::bcast}) {
    Collective collective(world, make_case(kind, 3, 30000));
    const auto before = node::handle_cache().counters();
    for (int round = 0; round < 2; ++round) EXPECT_STREQ("node", collective.run().c_str());
    collective.run();
    const auto third = node::handle_cache().counters();
    EXPECT_GT(third.opens, before.opens);
    for (int round = 0; round < 20; ++round) EXPECT_EQ(kDirect, collective.run());
    EXPECT_EQ(third.opens, node::handle_cache().counters().opens);
    EXPECT_EQ(third.hits, node::handle_cache().counters().hits);
  }
}

TEST(DirectExchange, ASecondCommunicatorSharesWhatIsOpen) {
  NodeWorld first(2, kRegionBytes, 2);
  NodeWorld second(2, kRegionBytes, 3);
  Collective collective(first, make_case(Kind::allgather, 2, 3000));
  for (int round = 0; round < 4; ++round) collective.run();
  const auto before = node::handle_cache().counters();
  collective.move_to(second);
  for (int round = 0; round < 4; ++round) collective.run();
  EXPECT_EQ(kDirect, collective.run());
  EXPECT_EQ(before.opens, node::handle_cache().counters().opens);
  EXPECT_EQ(before.hits + 2, node::handle_cache().counters().hits);
}

TEST(DirectExchange, OneHostBufferAndAllGoThroughTheRegions) {
  NodeWorld world(3, kRegionBytes, 4);
  Collective collective(world, make_case(Kind::allgather, 3, 3000), device::MemoryKind::pinned);
  for (int round = 0; round < 6; ++round) EXPECT_EQ("node", collective.run());
}

TEST(DirectExchange, FreedAndMadeAgainAtTheSameAddressIsAnotherBuffer) {
  NodeWorld world(2, kRegionBytes, 5);
  Collective collective(world, make_case(Kind::allgather, 2, 20000));
  for (int round = 0; round < 4; ++round) collective.run();
  const std::size_t handles = node::handle_cache().handles();
  const std::size_t descriptors = open_descriptors();
  for (int life = 0; life < 30; ++life) {
    const void* const address = collective.in(1).address();
    collective.renew_in(1);
    ASSERT_EQ(address, collective.in(1).address());
    EXPECT_EQ("node", collective.run());
    EXPECT_EQ("node", collective.run());
    collective.run();
    EXPECT_EQ(kDirect, collective.run());
    EXPECT_EQ(handles, node::handle_cache().handles());
    EXPECT_GE(descriptors + 1, open_descriptors());
  }
}

TEST(DirectExchange, FreedMemoryIsClosedThoughNothingNewIsUsed) {
  NodeWorld world(2, kRegionBytes, 6);
  Collective kept(world, make_case(Kind::allgather, 2, 20000));
  for (int round = 0; round < 4; ++round) kept.run();
  const std::size_t handles = node::handle_cache().handles();
  const std::size_t descriptors = open_descriptors();
  {
    Collective freed(world, make_case(Kind::allgather, 2, 10000));
    for (int round = 0; round < 4; ++round) freed.run();
    EXPECT_EQ(handles + 2, node::handle_cache().handles());
  }
  for (std::size_t round = 0; round < node::Board::kOffers + 2; ++round) kept.run();
  EXPECT_EQ(handles, node::handle_cache().handles());
  EXPECT_EQ(descriptors, open_descriptors());
  EXPECT_EQ(kDirect, kept.run());
}

TEST(DirectExchange, LeavingACommunicatorClosesEverything) {
  const std::size_t handles = node::handle_cache().handles();
  {
    NodeWorld world(3, kRegionBytes, 8);
    Collective collective(world, make_case(Kind::alltoall, 3, 2000));
    for (int round = 0; round < 5; ++round) collective.run();
    EXPECT_LT(handles, node::handle_cache().handles());
  }
  EXPECT_EQ(handles, node::handle_cache().handles());
}

// Memory that peers have open cannot be given out again, so what is lent is bounded: a program that
// frees most of the device's memory gets it back at once, and the rest once its peers have called.
TEST(DirectExchange, MostOfTheMemoryIsNeverLent) {
  device::DeviceDescription device;
  ASSERT_OK(device::host_runtime().describe(0, device));
  NodeWorld world(2, kRegionBytes, 9);
  const std::size_t handles = node::handle_cache().handles();
  for (const auto& [part, lent] : {std::pair{0.3, false}, {0.1, true}}) {
    for (int life = 0; life < 10; ++life) {
      const auto size_bytes =
          static_cast<std::size_t>(part * static_cast<double>(device.memory_bytes));
      Buffer mine(size_bytes);
      Buffer yours(size_bytes);
      Buffer sum(4096);
      Buffer other(4096);
      std::string way;
      for (int round = 0; round < 5; ++round) {
        std::vector<core::Pipeline> views(2);
        for (int rank = 0; rank < 2; ++rank) {
          core::Pipeline& view = views[static_cast<std::size_t>(rank)];
          view.exchange = make_case(Kind::allreduce, 2, 4096, false, 0, 1 << 20).call;
          view.rank = rank;
          view.in = (rank == 0 ? mine : yours).end(4096);
          view.out = (rank == 0 ? sum : other).end(4096);
        }
        way = world.run(views, [](int) {});
      }
      EXPECT_EQ(lent ? kDirect : "node", way);
      EXPECT_GE(handles + (lent ? 2 : 0), node::handle_cache().handles());
    }
  }
}

TEST(DirectExchange, ManyBuffersInTurnAreBoundedAndRight) {
  NodeWorld world(2, kRegionBytes, 10);
  const std::size_t handles = node::handle_cache().handles();
  std::vector<std::unique_ptr<Collective>> many;
  for (std::size_t i = 0; i < node::Board::kOffers + 4; ++i)
    many.push_back(std::make_unique<Collective>(world, make_case(Kind::allgather, 2, 500 + i)));
  for (int round = 0; round < 5; ++round) {
    for (const auto& collective : many) collective->run();
  }
  EXPECT_EQ(handles + 2 * node::Board::kOffers, node::handle_cache().handles());
  const auto before = node::handle_cache().counters();
  for (const auto& collective : many) collective->run();
  EXPECT_EQ(before.opens, node::handle_cache().counters().opens);
  // What is used no more gives way.
  std::string way;
  for (std::uint64_t round = 0; round < node::Offers::kIdleCalls + 10; ++round)
    way = many.back()->run();
  EXPECT_EQ(kDirect, way);
  EXPECT_EQ(handles + 2 * node::Board::kOffers, node::handle_cache().handles());
}

// Against MPI's rules, but all the same: in place means shares, and one rank cannot decide that.
TEST(DirectExchange, InPlaceOnSomeRanksOnlyGoesThroughTheRegions) {
  NodeWorld world(2, kRegionBytes, 14);
  constexpr std::size_t kBytes = 4096;
  Buffer mine(kBytes);
  Buffer yours(kBytes);
  Buffer sum(kBytes);
  std::vector<core::Pipeline> views(2);
  for (core::Pipeline& view : views)
    view.exchange = make_case(Kind::allreduce, 2, kBytes, false, 0, 2 * kBytes).call;
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

// What was withdrawn may still be looked at by a peer that has not called since.
TEST(Offers, ASlotIsUsedAgainOnceAllHaveSeenThatItWasWithdrawn) {
  NodeWorld world(2, kRegionBytes, 12);
  node::Offers& mine = world.group(0).offers();
  const auto lend = [&](const Buffer& buffer) {
    std::int32_t offer = -1;
    for (unsigned uses = 0; uses < node::Offers::kUsesBeforeOffer; ++uses) {
      mine.take_call();
      (void)mine.use(buffer.end(1).memory, node::kEveryone, offer);
    }
    return offer;
  };
  Buffer first(100);
  EXPECT_EQ(0, lend(first));
  world.group(1).offers().tend();
  std::int32_t offer = -1;
  EXPECT_TRUE(mine.use(first.end(1).memory, node::kEveryone, offer));
  first.free();
  const Buffer second(200);
  EXPECT_EQ(1, lend(second));
  world.group(1).offers().tend();
  const Buffer third(300);
  EXPECT_EQ(0, lend(third));
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
    core::Pipeline made;
    made.exchange = make_case(Kind::gather, 2, kBytes).call;
    made.rank = rank;
    made.in_place = rank == 0;
    if (rank == 1) made.in = source->end(kBytes);
    if (rank == 0) made.out = gathered.end(2 * kBytes);
    return made;
  };
  for (int round = 0; round < 4; ++round) world.run({view(0, nullptr), view(1, &lent)}, [](int) {});
  lent.write(Bytes(kBytes, 99));

  std::vector<core::Pipeline> views;
  views.reserve(2 * (kAhead + 1));
  std::optional<core::NodeExchange> sender;
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
    core::NodeExchange root(world.shared_group(0), views.emplace_back(view(0, nullptr)));
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

// No descriptor is left when the peers would open what is offered.
TEST(DirectExchange, APeerThatCannotOpenKeepsTheRegions) {
  NodeWorld world(2, kRegionBytes, 11);
  Collective collective(world, make_case(Kind::allgather, 2, 3000));
  for (int round = 0; round < 2; ++round) collective.run();
  rlimit usual{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &usual));
  rlimit none = usual;
  none.rlim_cur = 0;
  const auto before = node::handle_cache().counters();
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  for (int rank = 0; rank < 2; ++rank) world.group(rank).offers().tend();
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &usual));
  for (int round = 0; round < 10; ++round) EXPECT_EQ("node", collective.run());
  EXPECT_LT(before.refusals, node::handle_cache().counters().refusals);
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  setenv("ACCORD_RUNTIME", "host", 1);
  setenv("ACCORD_DIRECT_BYTES", "1", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
