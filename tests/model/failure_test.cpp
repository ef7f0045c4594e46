// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What happens on errors: calls that do not match, and copies that fail, at every possible place.
// Every rank concerned gets an error, nobody hangs, and everything is given back.
#include <gtest/gtest.h>

#include <atomic>

#include "any_collective.h"
#include "coll/run/collective.h"
#include "fake_device.h"
#include "scenario.h"

namespace accord::model {
namespace {

// Ranks that make different calls of one kind all get an error, and nobody hangs. Of a non-blocking
// one the error comes with its completion.
TEST(Failure, MismatchedCallsGiveAnErrorEverywhere) {
  for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
    RunOptions options;
    options.seed = seed;
    const Form form = seed % 2 == 0 ? Form::blocking : Form::nonblocking;
    const std::string message = run_ranks(3, options, {}, [form](Rank& rank) {
      rank.shim->keep_errors = true;
      Allreduce reduce(Place::device_a, rank.world_rank == 1 ? 24 : 40, 0);
      Request request = rank.mpi.collective(form, kWorld, reduce.args);
      MessageStatus status;
      if (form == Form::nonblocking) rank.mpi.wait(request, status);
      if (rank.shim->last_error.code() != StatusCode::mismatch)
        rank.scheduler.fail("no error was reported");
    });
    ASSERT_EQ(message, "");
  }
}

// A copy that fails, at every possible place: an error, not a hang, and everything is given back.
TEST(Failure, FailingCopiesAreReportedAndCleanedUp) {
  for (long fail_after = 0; fail_after < 12; ++fail_after) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      RunOptions options;
      options.seed = seed;
      bool failed = false;
      // One rank suffices: a communicator of its own, cut into chunks by hand.
      const std::string message = run_ranks(1, options, {}, [&](Rank& rank) {
        Allreduce reduce(Place::device_a, 24, 3);
        coll::CollectiveCall call;
        coll::CollArgs made;
        made.key.size_bytes = made.size_bytes = 24 * sizeof(std::int64_t);
        made.chunk_bytes = 32;
        made.ballot = core::Ballot::device;
        const auto end = [](const Buffer& buffer) {
          core::CallEnd call_end;
          call_end.user = buffer.data;
          call_end.runtime = &FakeDevice::get(0);
          call_end.device = 0;
          call_end.segment = {core::Typemap::contiguous(8), buffer.count, 0};
          return call_end;
        };
        made.in = end(reduce.args.send);
        made.out = end(reduce.args.recv);
        made.host.issue_vote = [](const core::Vote& mine, core::Vote& all,
                                  core::HostRequest& request) {
          all = mine;
          request = kDoneRequest;
          return 0;
        };
        made.host.issue_chunk = [](const void*, void*, std::size_t, core::HostRequest& request) {
          request = kDoneRequest;
          return 0;
        };
        call.args = std::move(made);
        const auto queue = std::make_shared<core::CommQueue>();
        FakeDevice::get(0).fail_after(fail_after);
        bool repeatable = false;
        const Status status = coll::run_collective(rank.shim->engine(), queue, call, repeatable);
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

// A copy that fails in an exchange among ranks, whichever of them it hits: the others hear of it
// and do not wait for that rank, in this call nor in the next. Buffers of two places, so that one
// end is copied by other means than the other.
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
TEST(Failure, FailingCopiesInAnExchangeEndItEverywhere) {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  expect_failing_copies_end_exchanges(shim, 200, 1000);
}

TEST(Failure, FailingCopiesInAnExchangePairByPairEndItEverywhere) {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  shim.exchange.pairs = true;
  expect_failing_copies_end_exchanges(shim, 200, 1000);
}

TEST(Failure, FailingCopiesOfInboxExchangesEndThemEverywhere) {
  ShimOptions shim;
  shim.exchange.lane_bytes = 2048;
  expect_failing_copies_end_exchanges(shim, 200, 300);
}

// A root that gathers in place copies out what lies before and behind its own block; when the
// second copy fails the first one is still under way.
TEST(Failure, FailingCopiesOfAGatherInPlaceAreAwaited) {
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

// A copy or kernel that fails at any point of calls on buffers that are lent by then: whoever's
// call ends without an error has the right data, in this call and in later ones, and nobody waits
// for ever.
int failures_of(Collective kind, const AnyWay& way, std::uint64_t seeds,
                std::size_t elements = 60) {
  constexpr int kCalls = 8;
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    const int failing_call = static_cast<int>(seed % kCalls);
    std::atomic<int> ended = 0;
    const std::string message = run_ranks(kAnyRanks, options, way.shim, [&](Rank& rank) {
      rank.shim->keep_errors = true;
      AnyCollective calls(kind, rank.world_rank, elements);
      for (int call = 0; call < kCalls; ++call) {
        if (rank.world_rank == 0 && call == failing_call)
          FakeDevice::get(0).fail_after(static_cast<long>(seed / kCalls % 12));
        calls.fill(call);
        rank.shim->last_error = {};
        (void)rank.mpi.collective(Form::blocking, kWorld, calls.args());
        failures += rank.shim->last_error.ok() ? 0 : 1;
        const std::string wrong = calls.difference();
        if (rank.shim->last_error.ok() && !wrong.empty())
          rank.scheduler.fail("called good: " + wrong);
      }
      // Peers may be at the buffers of a rank that has got an error.
      for (++ended; ended < kAnyRanks; rank.scheduler.yield()) rank.scheduler.event();
    });
    EXPECT_EQ(message, "") << name_of(kind) << " by " << way.name << ", seed " << seed;
    if (!message.empty()) break;
  }
  return failures;
}

TEST(Failure, FailingCopiesEndCallsOfAllKindsByAllWays) {
  constexpr std::uint64_t kSeeds = 48;
  for (const AnyWay& way : any_ways(4096)) {
    for (const Collective kind : kAnyKinds) {
      if (way.is_by_host(kind)) continue;
      EXPECT_GT(failures_of(kind, way, kSeeds), 0) << name_of(kind) << " by " << way.name;
    }
  }
}

// Pairs that no inbox takes go behind those that do, and what fails there ends the whole call.
TEST(Failure, FailingCopiesOfPairsTooLongForInboxesEndTheCall) {
  constexpr std::size_t kLaneBytes = 4096;
  constexpr std::size_t kElements = 2 * kLaneBytes / sizeof(std::int64_t);
  const AnyWay way = any_ways(kLaneBytes).back();
  EXPECT_GT(failures_of(Collective::alltoall, way, 48, kElements), 0);
}

}  // namespace
}  // namespace accord::model
