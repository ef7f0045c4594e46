// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A rank whose process ends in the middle of a collective that goes from device to device: the
// others get an error and do not wait for it, in this call nor in later ones. Part of
// model_mutation_test, whose node room can be told that a process is gone.
#include <gtest/gtest.h>

#include <atomic>

#include "any_collective.h"

namespace accord::model {
namespace {

constexpr int kRanks = kAnyRanks;
constexpr int kMortal = 1;
constexpr int kCallsBefore = 4;  // the fourth is the last for some time that votes
constexpr int kCallsAfter = 3;
constexpr std::size_t kElements = 200;

void await(Rank& rank, const std::atomic<int>& ended, int ranks) {
  while (ended < ranks) {
    rank.scheduler.event();  // time passes
    rank.scheduler.yield();
  }
}

// Begins a call, goes some way, and then does nothing until the others are through. What it leaves
// behind is the process's, and goes with it: here that is cleaned up at the end.
void die(Rank& rank, const AnyCollective& calls, std::uint64_t polls,
         const std::atomic<int>& ended) {
  Request request = rank.mpi.collective(Form::nonblocking, kWorld, calls.args());
  MessageStatus status;
  for (std::uint64_t poll = 0; poll < polls && request != kNoRequest; ++poll)
    (void)rank.mpi.test(request, status);
  dead_rank = rank.world_rank;
  await(rank, ended, kRanks - 1);
  if (request != kNoRequest) rank.mpi.wait(request, status);
}

void survive(Rank& rank, AnyCollective& calls) {
  for (int call = 0; call < kCallsAfter; ++call) {
    rank.shim->last_error = {};
    calls.fill(kCallsBefore + call);
    (void)rank.mpi.collective(Form::blocking, kWorld, calls.args());
    const std::string wrong = calls.difference();
    if (rank.shim->last_error.ok() && !wrong.empty()) rank.scheduler.fail("called good: " + wrong);
  }
  // A sender need not wait for its receiver.
  const Collective kind = calls.args().kind;
  const bool is_prefix_of_none = is_prefix(kind) && rank.world_rank < kMortal;
  if (kind == Collective::gather || kind == Collective::reduce || is_prefix_of_none) return;
  if (rank.shim->last_error.code() != StatusCode::device_error)
    rank.scheduler.fail("no error: " + rank.shim->last_error.message());
}

void expect_errors(Collective kind, const AnyWay& way, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.mutation = Mutation::rank_dies;
    std::atomic<int> ended = 0;
    const std::string message = run_ranks(kRanks, options, way.shim, [&](Rank& rank) {
      rank.shim->keep_errors = true;
      AnyCollective calls(kind, rank.world_rank, kElements);
      for (int call = 0; call < kCallsBefore; ++call) {
        calls.fill(call);
        (void)rank.mpi.collective(Form::blocking, kWorld, calls.args());
      }
      if (dead_rank < 0 && !rank.shim->last_error.ok())
        rank.scheduler.fail(rank.shim->last_error.message());
      calls.fill(kCallsBefore);
      if (rank.world_rank == kMortal) {
        die(rank, calls, seed * 3 % 50, ended);
      } else {
        survive(rank, calls);
      }
      // Memory that peers have open stays until they have closed it; here it goes with `calls`.
      ++ended;
      await(rank, ended, kRanks);
    });
    ASSERT_EQ(message, "") << name_of(kind) << " by " << way.name << ", seed " << seed;
  }
}

TEST(RankDeath, EndsCallsOfAllKindsByAllWays) {
  constexpr std::uint64_t kSeeds = 12;
  for (const AnyWay& way : any_ways(kElements * kRanks * sizeof(std::int64_t)))
    for (const Collective kind : kAnyKinds)
      if (!HasFatalFailure() && !way.is_by_host(kind)) expect_errors(kind, way, kSeeds);
}

}  // namespace
}  // namespace accord::model
