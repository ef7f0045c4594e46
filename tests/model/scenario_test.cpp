// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Known traps, written out by hand, each over many schedules: programs that are legal and that a
// careless layer between program and MPI deadlocks; and what happens on errors.
#include <gtest/gtest.h>

#include <numeric>

#include "core/collective.h"
#include "core/collective_operation.h"
#include "fake_device.h"
#include "runner.h"
#include "user_buffer.h"

namespace accord::model {
namespace {

constexpr std::uint64_t kSchedules = 60;

std::vector<std::int64_t> numbers(std::size_t count, std::int64_t first) {
  std::vector<std::int64_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

void expect(Rank& rank, const UserBuffer& buffer, const std::vector<std::int64_t>& values) {
  if (const std::string wrong = buffer.difference(values); !wrong.empty())
    rank.scheduler.fail(wrong);
}

struct Allreduce {
  Allreduce(Place place, std::size_t count, std::int64_t first)
      : send({place, 0}, count, 1), recv({place, 0}, count, 1) {
    send.fill(numbers(count, first));
    args.kind = Collective::allreduce;
    args.op = Op::sum;
    args.send = send.argument();
    args.recv = recv.argument();
  }
  UserBuffer send;
  UserBuffer recv;
  CollectiveArgs args{};
};

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

// Ranks that make different calls of one kind all get an error, and nobody hangs.
TEST(Scenario, MismatchedCallsGiveAnErrorEverywhere) {
  for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
    RunOptions options;
    options.seed = seed;
    const std::string message = run_ranks(3, options, {}, [](Rank& rank) {
      rank.shim->keep_errors = true;
      Allreduce reduce(Place::device_a, rank.world_rank == 1 ? 24 : 40, 0);
      (void)rank.mpi.collective(Form::blocking, kWorld, reduce.args);
      if (rank.shim->last_error.code() != StatusCode::mismatch)
        rank.scheduler.fail("no error was reported");
    });
    ASSERT_EQ(message, "");
  }
}

// A copy that fails, at every possible place: an error, not a hang, and everything is given back.
TEST(Scenario, FailingCopiesAreReportedAndCleanedUp) {
  for (long fail_after = 0; fail_after < 12; ++fail_after) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      RunOptions options;
      options.seed = seed;
      bool failed = false;
      // One rank suffices: a communicator of its own, cut into chunks by hand.
      const std::string message = run_ranks(1, options, {}, [&](Rank& rank) {
        Allreduce reduce(Place::device_a, 24, 3);
        core::CollectiveCall call;
        core::Pipeline made;
        made.key.size_bytes = made.size_bytes = 24 * sizeof(std::int64_t);
        made.chunk_bytes = 32;
        made.ballot = core::Ballot::device;
        const auto end = [](const Buffer& buffer) {
          core::PipelineEnd pipeline_end;
          pipeline_end.user = buffer.data;
          pipeline_end.runtime = &FakeDevice::get(0);
          pipeline_end.device = 0;
          pipeline_end.segment = {core::Typemap::contiguous(8), buffer.count, 0};
          return pipeline_end;
        };
        made.in = end(reduce.args.send);
        made.out = end(reduce.args.recv);
        made.issue_vote = [](const core::Vote& mine, core::Vote& all, core::HostRequest& request) {
          all = mine;
          request = kDoneRequest;
          return 0;
        };
        made.issue_chunk = [](const void*, void*, std::size_t, core::HostRequest& request) {
          request = kDoneRequest;
          return 0;
        };
        call.pipeline = std::move(made);
        const auto queue = std::make_shared<core::CommQueue>();
        FakeDevice::get(0).fail_after(fail_after);
        bool repeatable = false;
        const Status status = core::run_collective(rank.shim->engine(), queue, call, repeatable);
        FakeDevice::get(0).fail_after(-1);
        failed = !status.ok();
        if (failed && status.code() != StatusCode::device_error)
          rank.scheduler.fail("another error");
        if (!failed) expect(rank, reduce.recv, numbers(24, 3));
        if (rank.shim->engine().busy(*queue)) rank.scheduler.fail("the queue is still busy");
      });
      ASSERT_EQ(message, "");
      EXPECT_EQ(failed, fail_after < 12) << fail_after;  // six chunks, in and out
    }
  }
}

// Buffers that are used again and again are reached by the peers themselves, under every schedule;
// what a rank writes into its send buffer once its call is complete reaches nobody. Copy engines
// spread 24,000 bytes in several pieces, since a region of 12 KiB takes half of it.
TEST(Scenario, CollectivesOnTheSameBuffersGoStraightBetweenThem) {
  struct Way {
    std::size_t elements;
    std::size_t one_shot_bytes;
    bool spread;
    bool in_place;
  };
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  shim.exchange.direct = true;
  for (const Way& way : {Way{600, 0, false, false}, Way{600, 1 << 20, false, false},
                         Way{3000, 0, true, false}, Way{3000, 0, true, true}}) {
    shim.exchange.one_shot_bytes = way.one_shot_bytes;
    shim.exchange.spread = way.spread;
    const auto before = core::DirectExchange::counters();
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      RunOptions options;
      options.seed = seed;
      const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
        Allreduce reduce(Place::device_a, way.elements, 5);
        reduce.args.in_place = way.in_place;
        for (std::int64_t round = 0; round < 12; ++round) {
          (way.in_place ? reduce.recv : reduce.send).fill(numbers(way.elements, round));
          (void)rank.mpi.collective(Form::blocking, kWorld, reduce.args);
          std::vector<std::int64_t> sums = numbers(way.elements, round);
          for (std::int64_t& value : sums) value *= 3;
          expect(rank, reduce.recv, sums);
        }
      });
      ASSERT_EQ(message, "") << "seed " << seed << ", one shot " << way.one_shot_bytes
                             << (way.spread ? ", spread" : "")
                             << (way.in_place ? ", in place" : "");
    }
    const auto after = core::DirectExchange::counters();
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
  const auto before = core::PairwiseExchange::counters();
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
  EXPECT_GT(core::PairwiseExchange::counters().lent, before.lent + 200);
}

// The same in an exchange among ranks, whichever of them it hits: the others hear of it and do not
// wait for that rank, in this call nor in the next. Buffers of two places, so that one end is
// copied by other means than the other.
void expect_failing_copies_end_exchanges(const ShimOptions& shim, std::size_t elements,
                                         int failures_min) {
  constexpr long kCopies = 40;
  const std::vector<std::pair<End, End>> ends{{{Place::device_a, 0}, {Place::device_a, 0}},
                                              {{Place::host, 0}, {Place::device_a, 1}},
                                              {{Place::device_a, 1}, {Place::host, 0}}};
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 10 * kCopies; ++seed) {
    const auto& [from, to] = ends[seed % ends.size()];
    RunOptions options;
    options.seed = seed;
    const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
      rank.shim->keep_errors = true;
      if (rank.world_rank == 0) FakeDevice::get(0).fail_after(static_cast<long>(seed) % kCopies);
      for (int call = 0; call < 2; ++call) {
        UserBuffer send(from, 3 * elements, 1);
        UserBuffer recv(to, 3 * elements, 1);
        std::vector<std::int64_t> values = numbers(3 * elements, 5);
        send.fill(values);
        CollectiveArgs args{.kind = Collective::alltoall};
        args.send = send.argument();
        args.recv = recv.argument();
        rank.shim->last_error = {};
        (void)rank.mpi.collective(Form::blocking, kWorld, args);
        const Status& status = rank.shim->last_error;
        failures += status.ok() ? 0 : 1;
        if (!status.ok() && status.code() != StatusCode::device_error)
          rank.scheduler.fail("another error: " + status.message());
        if (!status.ok()) continue;
        const auto own = static_cast<std::ptrdiff_t>(elements) * rank.world_rank;
        const std::vector<std::int64_t> block(
            values.begin() + own, values.begin() + own + static_cast<std::ptrdiff_t>(elements));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = block[i % elements];
        expect(rank, recv, values);
      }
    });
    ASSERT_EQ(message, "") << "copy " << seed % kCopies << ", seed " << seed;
  }
  EXPECT_GT(failures, failures_min);  // of 2,400 calls
}

// In the rest the failure came later, or ended a try.
TEST(Scenario, FailingCopiesInAnExchangeEndItEverywhere) {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  expect_failing_copies_end_exchanges(shim, 200, 1000);
}

TEST(Scenario, FailingCopiesInAnExchangePairByPairEndItEverywhere) {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  shim.exchange.pairs = true;
  expect_failing_copies_end_exchanges(shim, 200, 1000);
}

TEST(Scenario, FailingCopiesOfInboxExchangesEndThemEverywhere) {
  ShimOptions shim;
  shim.exchange.lane_bytes = 2048;
  expect_failing_copies_end_exchanges(shim, 200, 300);
}

// A root that gathers in place copies out what lies before and behind its own block; when the
// second copy fails the first one is still under way.
TEST(Scenario, FailingCopiesOfAGatherInPlaceAreAwaited) {
  constexpr long kCopies = 40;
  constexpr std::size_t kElements = 20;
  constexpr int kRoot = 1;
  ShimOptions shim;
  shim.exchange.lane_bytes = 2048;
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 20 * kCopies; ++seed) {
    RunOptions options;
    options.seed = seed;
    const std::string message = run_ranks(3, options, shim, [&](Rank& rank) {
      rank.shim->keep_errors = true;
      if (rank.world_rank == 0) FakeDevice::get(0).fail_after(static_cast<long>(seed) % kCopies);
      const bool is_root = rank.world_rank == kRoot;
      UserBuffer buffer({Place::device_a, 1}, (is_root ? 3 : 1) * kElements, 1);
      CollectiveArgs args{.kind = Collective::gather, .root = kRoot};
      (is_root ? args.recv : args.send) = buffer.argument();
      args.in_place = is_root;
      (void)rank.mpi.collective(Form::blocking, kWorld, args);
      failures += rank.shim->last_error.ok() ? 0 : 1;
    });
    ASSERT_EQ(message, "") << "copy " << seed % kCopies << ", seed " << seed;
  }
  EXPECT_GT(failures, 150);  // of 2,400 calls
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
          if (core::last_path() != expected) rank.scheduler.fail("another way");
          std::vector<std::int64_t> sums = numbers(40, 0);
          for (std::int64_t& value : sums) value *= 3;
          expect(rank, reduce.recv, sums);
        }
      });
      ASSERT_EQ(message, "") << "seed " << seed;
    }
  }
}

// The host MPI gives a handle out again as soon as one thread has completed it, before that thread
// can tell us.
TEST(Requests, HandleThatComesBackBeforeItsWorkIsFinished) {
  struct Work final : core::Tracked {
    Status start() override {
      ++starts;
      return {};
    }
    Status finish(const core::Completion&) override {
      ++finishes;
      return {};
    }
    int starts = 0;
    int finishes = 0;
  };
  constexpr core::HostRequest kHandle = 77;
  core::Requests requests;
  const auto old_work = std::make_shared<Work>();
  requests.track(kHandle, old_work);
  EXPECT_EQ(requests.claim(kHandle), old_work);
  requests.unclaim(old_work);  // a test that found it incomplete
  ASSERT_EQ(requests.claim(kHandle), old_work);
  // Complete in the host MPI. Another thread gets the handle for a request that needs nothing of
  // us.
  EXPECT_EQ(requests.find(kHandle), nullptr);
  EXPECT_EQ(requests.claim(kHandle), nullptr);
  EXPECT_TRUE(requests.start(kHandle).ok());
  EXPECT_EQ(old_work->starts, 0);
  // Then again, for one that does.
  const auto new_work = std::make_shared<Work>();
  requests.track(kHandle, new_work);
  EXPECT_TRUE(requests.finish(kHandle, old_work, {}).ok());
  EXPECT_EQ(old_work->finishes, 1);
  ASSERT_EQ(requests.claim(kHandle), new_work);
  EXPECT_TRUE(requests.finish(kHandle, new_work, {}).ok());
  EXPECT_TRUE(requests.finish(kHandle, new_work, {}).ok());  // once is enough
  EXPECT_EQ(new_work->finishes, 1);
  EXPECT_TRUE(requests.empty());
}

TEST(ModeTable, VotesAtPowersOfTwoThenPeriodically) {
  core::ModeTable table;
  const core::Key key{1, 2, 3, 4};
  std::shared_ptr<core::VoteResult> latest;
  for (std::uint64_t call = 1; call <= 5000; ++call) {
    const core::Turn turn = table.next(key);
    const bool votes = call <= 1024 ? (call & (call - 1)) == 0 : call % 1024 == 0;
    ASSERT_EQ(turn.votes, votes) << call;
    if (votes) {
      ASSERT_NE(turn.result, latest);
      latest = turn.result;
    }
    ASSERT_EQ(turn.result, latest);
  }
}

TEST(ModeTable, IsBoundedAndForgetsAtTheSameCallEverywhere) {
  core::ModeTable table;
  const auto key = [](std::size_t i) { return core::Key{1, 0, 0, i}; };
  for (std::size_t i = 0; i < core::ModeTable::kKeysMax; ++i) (void)table.next(key(i));
  EXPECT_TRUE(table.next(key(0)).votes);   // its second call
  EXPECT_FALSE(table.next(key(0)).votes);  // its third
  EXPECT_TRUE(table.next(key(9999)).votes);
  EXPECT_TRUE(table.next(key(0)).votes);  // its first again
}

TEST(Vote, MinimumTellsAgreementAndWhoHasWhat) {
  using core::Ballot;
  const core::Key key{1, 2, 3, 4};
  const core::Key other{1, 2, 3, 5};
  const auto combine = [](std::vector<core::Vote> votes) {
    core::Vote all = votes[0];
    for (const core::Vote& vote : votes) {
      for (std::size_t i = 0; i < 4; ++i) all.words[i] = std::min(all.words[i], vote.words[i]);
    }
    return all;
  };
  const core::Vote mixed =
      combine({core::Vote::cast(key, Ballot::host), core::Vote::cast(key, Ballot::device),
               core::Vote::cast(key, Ballot::neutral)});
  EXPECT_TRUE(mixed.agreed());
  EXPECT_TRUE(mixed.any_device());
  EXPECT_TRUE(mixed.any_host());
  const core::Vote neutral =
      combine({core::Vote::cast(key, Ballot::neutral), core::Vote::cast(key, Ballot::neutral)});
  EXPECT_FALSE(neutral.any_device() || neutral.any_host());
  EXPECT_FALSE(combine({core::Vote::cast(key, Ballot::host), core::Vote::cast(other, Ballot::host)})
                   .agreed());
}

}  // namespace
}  // namespace accord::model
