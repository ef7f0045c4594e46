// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Users' memory that ranks lend each other: nothing is opened once buffers repeat, memory that was
// freed is closed and never mistaken for what lies there now, and what is lent is bounded.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "device/frees.h"
#include "forwarding_runtime.h"
#include "node/handle_cache.h"
#include "node/housekeeping.h"
#include "node/offers.h"
#include "node_collective.h"

namespace accord::test {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST(Offers, OpensNothingAfterTheThirdCallOnTheSameBuffers) {
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

TEST(Offers, ASecondCommunicatorSharesWhatIsOpen) {
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

TEST(Offers, FreedAndMadeAgainAtTheSameAddressIsAnotherBuffer) {
  NodeWorld world(2, kRegionBytes, 5);
  Collective collective(world, make_case(Kind::reduce_scatter_block, 2, 20000));
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

TEST(Offers, FreedMemoryIsClosedThoughNothingNewIsUsed) {
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
  const std::size_t rounds = (node::Board::kOffers + 2) * node::Offers::kCallsPerLook;
  for (std::size_t round = 0; round < rounds; ++round) kept.run();
  EXPECT_EQ(handles, node::handle_cache().handles());
  EXPECT_EQ(descriptors, open_descriptors());
  EXPECT_EQ(kDirect, kept.run());
}

// Two buffers of a communicator are lent, and freed. Whatever the ranks call then, it is no call of
// that communicator.
TEST(Offers, FreedMemoryIsClosedThoughItsCommunicatorIsNotUsedAnyMore) {
  NodeWorld world(2, kRegionBytes, 7);
  const std::size_t handles = node::handle_cache().handles();
  const std::size_t descriptors = open_descriptors();
  for (const bool is_told : {true, false}) {
    {
      Collective freed(world, make_case(Kind::allgather, 2, 10000));
      for (int round = 0; round < 4; ++round) freed.run();
      EXPECT_EQ(handles + 2, node::handle_cache().handles());
    }
    if (is_told) {
      device::note_freed();
      for (int rank = 0; rank < 2; ++rank) node::keep_house();  // for the owner, and its peer
    } else {
      // Now and then, and less often where a look has taken long.
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (node::handle_cache().handles() != handles &&
             std::chrono::steady_clock::now() < give_up)
        node::keep_house();
    }
    EXPECT_EQ(handles, node::handle_cache().handles());
    EXPECT_EQ(descriptors, open_descriptors());
  }
}

TEST(Offers, LeavingACommunicatorClosesEverything) {
  const std::size_t handles = node::handle_cache().handles();
  {
    NodeWorld world(3, kRegionBytes, 8);
    Collective collective(world, make_case(Kind::alltoall, 3, 2000));
    for (int round = 0; round < 5; ++round) collective.run();
    EXPECT_LT(handles, node::handle_cache().handles());
  }
  EXPECT_EQ(handles, node::handle_cache().handles());
}

// An allreduce of two ranks from the beginning of allocations that take a part of the device.
class LargeAllocations {
 public:
  explicit LargeAllocations(double part) : in_{Buffer(bytes(part)), Buffer(bytes(part))} {}

  std::string run(NodeWorld& world, int rounds) {
    std::vector<coll::CollArgs> views(2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      views[rank].exchange = make_case(Kind::allreduce, 2, 4096, false, 0, 1 << 20).call;
      views[rank].ways.direct = true;
      views[rank].rank = static_cast<int>(rank);
      views[rank].in = in_[rank].end(4096);
      views[rank].out = out_[rank].end(4096);
    }
    std::string way;
    for (int round = 0; round < rounds; ++round) way = world.run(views, [](int) {});
    return way;
  }

 private:
  static std::size_t bytes(double part) {
    device::DeviceDescription device;
    EXPECT_OK(device::host_runtime().describe(0, device));
    return static_cast<std::size_t>(part * static_cast<double>(device.memory_bytes));
  }
  Buffer in_[2];
  Buffer out_[2] = {Buffer(4096), Buffer(4096)};
};

// Memory that peers have open cannot be given out again. Of one that is most of the device and soon
// freed nothing is lent, so that its program can have it back at once.
TEST(Offers, LargeAllocationsAreLentOnceTheyLast) {
  NodeWorld world(2, kRegionBytes, 9);
  const std::size_t handles = node::handle_cache().handles();
  for (int life = 0; life < 3; ++life) {
    {
      LargeAllocations large(0.3);
      EXPECT_EQ("node", large.run(world, 6));
      EXPECT_EQ(handles, node::handle_cache().handles());
      EXPECT_EQ(kDirect, large.run(world, 6));
    }
    device::note_freed();
    for (int rank = 0; rank < 2; ++rank) node::keep_house();
    EXPECT_EQ(handles, node::handle_cache().handles());
  }
}

TEST(Offers, NothingIsLentWhileMuchOfWhatWasFreedIsOpen) {
  NodeWorld first(2, kRegionBytes, 15);
  NodeWorld second(2, kRegionBytes, 16);
  auto large = std::make_unique<LargeAllocations>(0.3);
  EXPECT_EQ(kDirect, large->run(first, 12));
  large.reset();
  node::Offers& mine = first.group(0).offers();
  for (unsigned call = 0; call < node::Offers::kCallsPerLook; ++call) mine.tend();
  LargeAllocations other(0.1);
  EXPECT_EQ("node", other.run(second, 6));
  first.group(1).offers().tend();
  mine.tend();
  EXPECT_EQ(kDirect, other.run(second, 6));
}

TEST(Offers, WhatIsNoLongerLentMakesRoom) {
  LargeAllocations other(0.1);
  {
    NodeWorld world(2, kRegionBytes, 17);
    LargeAllocations large(0.1);
    EXPECT_EQ(kDirect, large.run(world, 6));
  }
  NodeWorld world(2, kRegionBytes, 18);
  EXPECT_EQ(kDirect, other.run(world, 6));
}

TEST(Offers, ManyBuffersInTurnAreBoundedAndRight) {
  NodeWorld world(2, kRegionBytes, 10);
  const std::size_t handles = node::handle_cache().handles();
  std::vector<std::unique_ptr<Collective>> many;
  for (std::size_t i = 0; i < node::Board::kOffers + 4; ++i)
    many.push_back(
        std::make_unique<Collective>(world, make_case(Kind::reduce_scatter_block, 2, 500 + i)));
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

// No descriptor is left when the peers would open what is offered.
TEST(Offers, APeerThatCannotOpenKeepsTheRegions) {
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

// Uses an allocation of `mine` until it is on offer to everyone, and says by which number.
std::int32_t lend(node::Offers& mine, const Buffer& buffer) {
  std::int32_t offer = -1;
  for (unsigned uses = 0; uses < node::Offers::kUsesBeforeOffer; ++uses) {
    mine.take_call();
    (void)mine.use(buffer.end(1).memory, node::kEveryone, offer);
  }
  return offer;
}

// A message lies in the buffer when another one is to go from there to somebody else.
TEST(Offers, AReaderWhoseProcessHasEndedIsNoMatterOfTheOthers) {
  constexpr int kRanks = 4;
  std::vector<node::DescriptorPort> ports(kRanks - 1);
  std::vector<node::PortAddress> addresses;
  for (node::DescriptorPort& port : ports) {
    ASSERT_OK(port.open());
    addresses.push_back(port.address());
  }
  addresses.push_back({.process = 1, .port = 1});  // nobody has such a socket
  int number = -1;
  ASSERT_OK(node::own_bell(number));
  std::shared_ptr<const node::Bell> bell;
  ASSERT_OK(node::bell_of(addresses[0].process, node::Descriptor(::dup(number)), bell));
  std::vector<node::Board> shared(node::Offers::shared_bytes(kRanks) / sizeof(node::Board) + 1);
  node::Offers ranks[kRanks - 1];
  for (std::size_t rank = 0; rank < ports.size(); ++rank)
    ranks[rank].attach(shared.data(), static_cast<int>(rank), device::host_runtime(), 0, nullptr,
                       ports[rank], addresses, {kRanks, bell});
  const Buffer buffer(100);
  const device::PointerInfo memory = buffer.end(1).memory;
  std::int32_t offer = -1;
  const auto is_lent_to = [&](int reader) {
    ranks[0].take_call();
    return ranks[0].use(memory, reader, offer);
  };
  for (unsigned uses = 0; uses < node::Offers::kUsesBeforeOffer; ++uses)
    EXPECT_FALSE(is_lent_to(1));
  ranks[1].tend();
  ASSERT_TRUE(is_lent_to(1));
  ranks[0].hold(offer);
  EXPECT_FALSE(is_lent_to(2));
  for (node::Offers& rank : ranks) rank.tend();
  EXPECT_NE(nullptr, ranks[1].find(0, {offer, 0}, ranks[0].generation(offer)));
  EXPECT_TRUE(is_lent_to(2));
  EXPECT_FALSE(is_lent_to(3));
  EXPECT_TRUE(is_lent_to(1));
  ranks[0].let_go(offer);
}

// What was withdrawn may still be looked at by a peer that has not called since.
TEST(Offers, ASlotIsUsedAgainOnceAllHaveSeenThatItWasWithdrawn) {
  NodeWorld world(2, kRegionBytes, 12);
  node::Offers& mine = world.group(0).offers();
  Buffer first(100);
  EXPECT_EQ(0, lend(mine, first));
  world.group(1).offers().tend();
  std::int32_t offer = -1;
  EXPECT_TRUE(mine.use(first.end(1).memory, node::kEveryone, offer));
  first.free();
  const Buffer second(200);
  EXPECT_EQ(1, lend(mine, second));
  world.group(1).offers().tend();
  mine.tend();
  const Buffer third(300);
  EXPECT_EQ(0, lend(mine, third));
}

// Its descriptor has been sent all the same, and would keep the memory.
TEST(Offers, NothingIsLeftOfWhatWasWithdrawnBeforeAPeerLooked) {
  NodeWorld world(2, kRegionBytes, 20);
  node::Offers& mine = world.group(0).offers();
  const std::size_t handles = node::handle_cache().handles();
  const std::size_t descriptors = open_descriptors();
  for (int life = 0; life < 3; ++life) {
    Buffer buffer(static_cast<std::size_t>(100 + life));
    EXPECT_EQ(0, lend(mine, buffer));
    buffer.free();
    const std::size_t rounds = node::Board::kOffers * node::Offers::kCallsPerLook;
    for (std::size_t round = 0; round < rounds; ++round) mine.tend();
    world.group(1).offers().tend();
    mine.tend();
    EXPECT_EQ(descriptors, open_descriptors());
    EXPECT_EQ(handles, node::handle_cache().handles());
  }
}

// In which something else happens while memory is opened.
class BusyRuntime final : public ForwardingRuntime {
 public:
  std::function<void()> meanwhile;

  Status open_memory(int device, const device::ExportedMemory& exported, void*& pointer) override {
    if (const auto once = std::exchange(meanwhile, nullptr)) once();
    return ForwardingRuntime::open_memory(device, exported, pointer);
  }
};

// A peer that opens one offer takes long enough for another one to be withdrawn.
TEST(Offers, OneWithdrawnWhileAPeerOpensAnotherIsClosedTheNextTime) {
  BusyRuntime runtime;
  NodeWorld world(2, kRegionBytes, 21, runtime);
  node::Offers& mine = world.group(0).offers();
  node::Offers& theirs = world.group(1).offers();
  const std::size_t handles = node::handle_cache().handles();
  Buffer first(100), withdrawn(200), fresh(300), later(400);
  EXPECT_EQ(0, lend(mine, first));
  EXPECT_EQ(1, lend(mine, withdrawn));
  theirs.tend();
  first.free();
  EXPECT_EQ(2, lend(mine, fresh));
  theirs.tend();
  mine.tend();  // the first place is free again
  const Buffer opened(500);
  EXPECT_EQ(0, lend(mine, opened));
  runtime.meanwhile = [&] {
    withdrawn.free();
    EXPECT_EQ(3, lend(mine, later));
  };
  theirs.tend();
  theirs.tend();
  EXPECT_EQ(handles + 3, node::handle_cache().handles());
}

// A driver does not open memory where other memory, which its owner has freed, is open.
class CoveredRuntime final : public ForwardingRuntime {
 public:
  int in_the_way = 0;

  Status open_memory(int device, const device::ExportedMemory& exported, void*& pointer) override {
    if (in_the_way > 0) return {StatusCode::device_error, "an old mapping covers the address"};
    return ForwardingRuntime::open_memory(device, exported, pointer);
  }
  Status close_memory(void* pointer) override {
    --in_the_way;
    return ForwardingRuntime::close_memory(pointer);
  }
};

TEST(Offers, WhatOldMemoryWasInTheWayOfIsOpenedOnceThatIsClosed) {
  CoveredRuntime runtime;
  NodeWorld first(2, kRegionBytes, 26, runtime);
  NodeWorld second(2, kRegionBytes, 27, runtime);
  const std::size_t descriptors = open_descriptors();
  node::Offers& mine = second.group(0).offers();
  Buffer old(100), fresh(200);
  EXPECT_EQ(0, lend(first.group(0).offers(), old));
  first.group(1).offers().tend();
  runtime.in_the_way = 1;
  EXPECT_EQ(0, lend(mine, fresh));
  std::int32_t offer = -1;
  for (int call = 0; call < 3; ++call) {
    second.group(1).offers().tend();
    EXPECT_FALSE(mine.use(fresh.end(1).memory, node::kEveryone, offer));
  }
  old.free();
  device::note_freed();
  for (int rank = 0; rank < 2; ++rank) node::keep_house();
  second.group(1).offers().tend();
  EXPECT_TRUE(mine.use(fresh.end(1).memory, node::kEveryone, offer));
  fresh.free();
  device::note_freed();
  for (int rank = 0; rank < 2; ++rank) node::keep_house();
  EXPECT_EQ(descriptors, open_descriptors());
}

// Whether kernels reach memory is found out later, where a kernel of the program keeps ours from
// running: calls go through the regions meanwhile, and none but the first waits.
TEST(Offers, MemoryIsTriedAgainOnceKernelsRun) {
  const ShortPatience patience;
  KernelRuntime runtime;
  NodeWorld world(2, kRegionBytes, 22, runtime);
  node::Offers& mine = world.group(0).offers();
  const Buffer buffer(100), other(200);
  runtime.is_busy = true;
  EXPECT_EQ(-1, lend(mine, buffer));
  node::Trial::patience = std::chrono::seconds(20);  // from here on a wait is a long one
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(-1, lend(mine, buffer));
  EXPECT_EQ(-1, lend(mine, other));
  EXPECT_GT(node::Trial::patience / 2, std::chrono::steady_clock::now() - before);
  runtime.is_busy = false;
  EXPECT_EQ(0, lend(mine, buffer));
  EXPECT_EQ(1, lend(mine, other));
}

// The same of what peers offer, of which one is on trial at a time.
TEST(Offers, WhatPeersOfferIsReachedOnceKernelsRun) {
  const ShortPatience patience;
  KernelRuntime runtime;
  NodeWorld world(2, kRegionBytes, 24, runtime);
  node::Offers& mine = world.group(0).offers();
  node::Offers& theirs = world.group(1).offers();
  const std::size_t handles = node::handle_cache().handles();
  const Buffer first(100), second(200);
  EXPECT_EQ(0, lend(mine, first));
  EXPECT_EQ(1, lend(mine, second));
  const auto is_reached = [&](const Buffer& buffer) {
    std::int32_t offer = -1;
    return mine.use(buffer.end(1).memory, node::kEveryone, offer);
  };
  runtime.is_busy = true;
  for (int call = 0; call < 3; ++call) theirs.tend();
  EXPECT_FALSE(is_reached(first) || is_reached(second));
  runtime.is_busy = false;
  theirs.tend();
  EXPECT_TRUE(is_reached(first) && is_reached(second));
  theirs.close();
  EXPECT_EQ(handles, node::handle_cache().handles());
}

// Unless its owner has withdrawn it meanwhile.
TEST(Offers, WhatWasWithdrawnDuringItsTrialIsClosed) {
  const ShortPatience patience;
  KernelRuntime runtime;
  NodeWorld world(2, kRegionBytes, 25, runtime);
  node::Offers& mine = world.group(0).offers();
  node::Offers& theirs = world.group(1).offers();
  const std::size_t handles = node::handle_cache().handles();
  Buffer freed(100);
  const Buffer other(200);
  EXPECT_EQ(0, lend(mine, freed));
  runtime.is_busy = true;
  theirs.tend();
  runtime.is_busy = false;
  freed.free();
  EXPECT_EQ(1, lend(mine, other));
  for (int call = 0; call < 2; ++call) theirs.tend();
  EXPECT_EQ(handles + 1, node::handle_cache().handles());
}

TEST(Offers, WhatAKernelMayYetReadStaysOpen) {
  const ShortPatience patience;
  KernelRuntime runtime;
  NodeWorld world(2, kRegionBytes, 23, runtime);
  node::Offers& mine = world.group(0).offers();
  node::Offers& theirs = world.group(1).offers();
  const std::size_t handles = node::handle_cache().handles();
  const Buffer buffer(100);
  EXPECT_EQ(0, lend(mine, buffer));
  runtime.is_busy = true;
  theirs.tend();
  theirs.close();
  EXPECT_EQ(handles + 1, node::handle_cache().handles());
  std::int32_t offer = -1;
  EXPECT_FALSE(mine.use(buffer.end(1).memory, node::kEveryone, offer)) << "not known to be reached";
  runtime.is_busy = false;
  theirs.tend();
  EXPECT_EQ(handles, node::handle_cache().handles());
}

}  // namespace
}  // namespace accord::test
