// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Known traps, written out by hand, each over many schedules: programs that are legal and that a
// careless layer between program and MPI deadlocks, or leads another way than it should.
#include "scenario.h"

#include <gtest/gtest.h>

#include "coll/intra/direct_exchange.h"
#include "coll/pairs/pairwise_exchange.h"
#include "coll/run/collective.h"
#include "device/host/inbox.h"

namespace accord::model {
namespace {

// Runs the same body on all ranks under many schedules, with and without threads.
void expect_passes(int ranks, const std::function<void(Rank&)>& body,
                   Mutation mutation = Mutation::none) {
  for (const bool threads_allowed : {true, false}) {
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      RunOptions options;
      options.seed = seed;
      options.mutation = mutation;
      ShimOptions shim;
      shim.threads_allowed = threads_allowed;
      ASSERT_EQ(run_ranks(ranks, options, shim, body), "")
          << "seed " << seed << ", threads " << threads_allowed;
    }
  }
}

// A sends a large device message and enters a barrier; B has posted the receive and sits in the
// barrier.
TEST(Scenario, SynchronousSendCompletesWhileBothSitInABarrier) {
  expect_passes(2, [](Rank& rank) {
    UserBuffer data({Place::device_a, 0}, 40, 1);
    MessageStatus status;
    Request request = kNoRequest;
    if (rank.world_rank == 0) {
      data.fill(numbers(40, 7));
      request = rank.mpi.isend(kWorld, 1, 5, data.argument(), UserMpi::Send::synchronous);
    } else {
      request = rank.mpi.irecv(kWorld, 0, 5, data.argument());
    }
    (void)rank.mpi.collective(Form::blocking, kWorld, CollectiveArgs{});
    rank.mpi.wait(request, status);
    expect(rank, data, numbers(40, 7));
  });
}

// A: Iallreduce, then a blocking receive from B, who sends only once its share of the Iallreduce is
// complete.
TEST(Scenario, ReceiveWaitsForAPeerThatWaitsForOurCollective) {
  for (const Place place : {Place::host, Place::device_a}) {
    expect_passes(2, [place](Rank& rank) {
      Allreduce reduce(place, 40, rank.world_rank);
      UserBuffer token({Place::host, 0}, 1, 1);
      MessageStatus status;
      Request request = rank.mpi.collective(Form::nonblocking, kWorld, reduce.args);
      if (rank.world_rank == 0) {
        status = rank.mpi.recv(kWorld, 1, 9, token.argument());
        rank.mpi.wait(request, status);
      } else {
        rank.mpi.wait(request, status);
        rank.mpi.send(kWorld, 0, 9, token.argument(), UserMpi::Send::synchronous);
      }
      std::vector<std::int64_t> sums(40);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<std::int64_t>(2 * i) + 1;
      expect(rank, reduce.recv, sums);
    });
  }
}

// The same dependence through a call that has no non-blocking twin.
TEST(Scenario, CommSplitWaitsForAPeerThatWaitsForOurCollective) {
  expect_passes(3, [](Rank& rank) {
    Allreduce reduce(Place::device_b, 30, 0);
    Comm half = kNoComm;
    CollectiveArgs dup{.kind = Collective::dup};
    Comm other = kNoComm;
    dup.created = &other;
    (void)rank.mpi.collective(Form::blocking, kWorld, dup);
    MessageStatus status;
    Request request = rank.mpi.collective(Form::nonblocking, other, reduce.args);
    if (rank.world_rank > 0) rank.mpi.wait(request, status);
    CollectiveArgs split{.kind = Collective::split, .color = rank.world_rank % 2};
    split.created = &half;
    (void)rank.mpi.collective(Form::blocking, kWorld, split);
    if (rank.world_rank == 0) rank.mpi.wait(request, status);
    for (Comm* comm : {&half, &other}) {
      (void)rank.mpi.collective(Form::blocking, *comm, CollectiveArgs{.kind = Collective::free});
    }
  });
}

// An orphaned send must not keep its rank out of the split that the receiver calls first.
TEST(Scenario, FreedSendIsReceivedAfterASplit) {
  expect_passes(2, [](Rank& rank) {
    UserBuffer data({Place::device_a, 0}, 20, 1);
    if (rank.world_rank == 0) {
      data.fill(numbers(20, 1));
      Request request = rank.mpi.isend(kWorld, 1, 3, data.argument(), UserMpi::Send::synchronous);
      rank.mpi.request_free(request);
    }
    Comm all = kNoComm;
    CollectiveArgs split{.kind = Collective::split};
    split.created = &all;
    (void)rank.mpi.collective(Form::blocking, kWorld, split);
    if (rank.world_rank == 1) {
      (void)rank.mpi.recv(kWorld, 0, 3, data.argument());
      expect(rank, data, numbers(20, 1));
    }
    (void)rank.mpi.collective(Form::blocking, all, CollectiveArgs{.kind = Collective::free});
  });
}

// Whether a vote has arrived yet differs by rank and schedule; the form of the third call must not.
TEST(Scenario, BlockingCallBehindNonblockingOnesOfItsKey) {
  expect_passes(3, [](Rank& rank) {
    const Place place = rank.world_rank == 0 ? Place::host : Place::device_a;
    for (const bool late_wait : {true, false}) {
      Allreduce first(Place::host, 20, 0);
      Allreduce second(Place::host, 20, 0);
      Allreduce third(place, 20, 4);
      MessageStatus status;
      Request a = rank.mpi.collective(Form::nonblocking, kWorld, first.args);
      Request b = rank.mpi.collective(Form::nonblocking, kWorld, second.args);
      if (!late_wait || rank.world_rank == 2) rank.mpi.wait(a, status);
      (void)rank.mpi.collective(Form::blocking, kWorld, third.args);
      rank.mpi.wait(b, status);
      rank.mpi.wait(a, status);
      std::vector<std::int64_t> sums = numbers(20, 4);
      for (std::int64_t& value : sums) value *= 3;
      expect(rank, third.recv, sums);
    }
  });
}

// Buffers that are used again and again are reached by the peers themselves, under every schedule;
// what a rank writes into its send buffer once its call is complete reaches nobody. Of two ranks
// copy engines spread 24,000 bytes in several pieces, since slots in a region of 12 KiB take half
// of a share.
TEST(Scenario, CollectivesOnTheSameBuffersGoStraightBetweenThem) {
  struct Way {
    std::size_t elements;
    std::size_t one_shot_bytes;
    bool spread;
    bool in_place;
    int ranks;
  };
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  shim.exchange.direct = true;
  for (const Way& way : {Way{600, 0, false, false, 3}, Way{600, 1 << 20, false, false, 3},
                         Way{3000, 0, true, false, 2}, Way{3000, 0, true, true, 2},
                         Way{3000, 0, true, false, 3}, Way{3000, 0, true, true, 3}}) {
    shim.exchange.one_shot_bytes = way.one_shot_bytes;
    shim.exchange.spread = way.spread;
    const auto before = coll::DirectExchange::counters();
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      RunOptions options;
      options.seed = seed;
      const std::string message = run_ranks(way.ranks, options, shim, [&](Rank& rank) {
        Allreduce reduce(Place::device_a, way.elements, 5);
        reduce.args.in_place = way.in_place;
        for (std::int64_t round = 0; round < 12; ++round) {
          (way.in_place ? reduce.recv : reduce.send).fill(numbers(way.elements, round));
          (void)rank.mpi.collective(Form::blocking, kWorld, reduce.args);
          std::vector<std::int64_t> sums = numbers(way.elements, round);
          for (std::int64_t& value : sums) value *= way.ranks;
          expect(rank, reduce.recv, sums);
        }
      });
      ASSERT_EQ(message, "") << "seed " << seed << ", one shot " << way.one_shot_bytes
                             << (way.spread ? ", spread" : "") << (way.in_place ? ", in place" : "")
                             << ", " << way.ranks << " ranks";
    }
    const auto after = coll::DirectExchange::counters();
    EXPECT_GT(after.direct, before.direct + 100);
    EXPECT_EQ(after.spread > before.spread, way.spread);
  }
}

// The same pair by pair, where the root alone reaches into the others' buffers.
TEST(Scenario, PairsOnTheSameBuffersGoStraightBetweenThem) {
  constexpr std::size_t kElements = 300;
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  shim.exchange.direct = true;
  shim.exchange.pairs = true;
  const auto before = coll::PairwiseExchange::counters();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RunOptions options;
    options.seed = seed;
    const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
      UserBuffer send({Place::device_a, 0}, kElements, 1);
      UserBuffer recv({Place::device_a, 0}, 3 * kElements, 1);
      CollectiveArgs gather{.kind = Collective::gather, .root = 1};
      gather.send = send.argument();
      if (rank.world_rank == gather.root) gather.recv = recv.argument();
      for (std::int64_t round = 0; round < 12; ++round) {
        send.fill(numbers(kElements, round));
        (void)rank.mpi.collective(Form::blocking, kWorld, gather);
        if (rank.world_rank != gather.root) continue;
        std::vector<std::int64_t> all;
        for (int peer = 0; peer < 3; ++peer) {
          const auto theirs = numbers(kElements, round);
          all.insert(all.end(), theirs.begin(), theirs.end());
        }
        expect(rank, recv, all);
      }
    });
    ASSERT_EQ(message, "") << "seed " << seed;
  }
  EXPECT_GT(coll::PairwiseExchange::counters().lent, before.lent + 200);
}

// What fits into a lane goes by inboxes, what does not pair by pair, and the one does not keep the
// other waiting.
TEST(Scenario, ShortPairsGoByInboxes) {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  shim.exchange.lane_bytes = 512;
  shim.exchange.pairs = true;
  for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
    RunOptions options;
    options.seed = seed;
    const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
      for (std::int64_t round = 0; round < 8; ++round) {
        const std::size_t elements = round % 3 == 2 ? 300 : 7;
        UserBuffer send({Place::device_a, 0}, elements, 1);
        UserBuffer recv({Place::device_a, 0}, 3 * elements, 1);
        CollectiveArgs gather{.kind = Collective::gather, .root = static_cast<int>(round % 3)};
        gather.send = send.argument();
        if (rank.world_rank == gather.root) gather.recv = recv.argument();
        send.fill(numbers(elements, rank.world_rank + round));
        (void)rank.mpi.collective(Form::blocking, kWorld, gather);
        const bool has_long = elements == 300;
        if (coll::last_path() != std::string(has_long ? "node-pairs" : "inbox"))
          rank.scheduler.fail("another way");
        if (rank.world_rank != gather.root) continue;
        std::vector<std::int64_t> all;
        for (int peer = 0; peer < 3; ++peer) {
          const auto theirs = numbers(elements, peer + round);
          all.insert(all.end(), theirs.begin(), theirs.end());
        }
        expect(rank, recv, all);
      }
    });
    ASSERT_EQ(message, "") << "seed " << seed;
  }
}

// Blocks that fill no bundle, one, and more.
TEST(Scenario, InboxesTakePacketsWhereAllDevicesDo) {
  for (const bool packets : {false, true}) {
    if (packets && !device::cpu_keeps_packets_whole()) GTEST_SKIP() << "not by this CPU";
    ShimOptions shim;
    shim.exchange.lane_bytes = 2048;
    shim.exchange.packets = packets;
    const std::string expected = packets ? "packets" : "inbox";
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      RunOptions options;
      options.seed = seed;
      const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
        for (const std::size_t elements : {1, 5, 6, 40, 256}) {
          Allreduce reduce(Place::device_a, elements, 0);
          (void)rank.mpi.collective(Form::blocking, kWorld, reduce.args);
          if (coll::last_path() != expected) rank.scheduler.fail("another way");
          std::vector<std::int64_t> sums = numbers(elements, 0);
          for (std::int64_t& value : sums) value *= 3;
          expect(rank, reduce.recv, sums);
        }
      });
      ASSERT_EQ(message, "") << "seed " << seed;
    }
  }
}

// Ranks that must not all have servers on one device do without inboxes, and the call that finds
// this goes through regions.
TEST(Scenario, RanksThatDeclineInboxesJoinRegionsInTheSameCall) {
  for (const unsigned exclusive_percent : {0u, 100u}) {
    ShimOptions shim;
    shim.exchange.node_bytes = 1;
    shim.exchange.lane_bytes = 2048;
    shim.exchange.exclusive_percent = exclusive_percent;
    const std::string expected = exclusive_percent == 0 ? "inbox" : "node";
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      RunOptions options;
      options.seed = seed;
      const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
        for (int call = 0; call < 3; ++call) {
          Allreduce reduce(Place::device_a, 40, 0);
          (void)rank.mpi.collective(Form::blocking, kWorld, reduce.args);
          if (coll::last_path() != expected) rank.scheduler.fail("another way");
          std::vector<std::int64_t> sums = numbers(40, 0);
          for (std::int64_t& value : sums) value *= 3;
          expect(rank, reduce.recv, sums);
        }
      });
      ASSERT_EQ(message, "") << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace accord::model
