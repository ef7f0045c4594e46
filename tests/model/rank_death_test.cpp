// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A rank whose process ends in the middle of a collective that goes from device to device: the
// others get an error and do not wait for it, in this call nor in later ones. Part of
// model_mutation_test, whose node room can be told that a process is gone.
#include <gtest/gtest.h>

#include <atomic>

#include "runner.h"
#include "user_buffer.h"

namespace accord::model {
namespace {

constexpr int kRanks = 3;
constexpr int kMortal = 1;
constexpr int kCallsBefore = 4;  // the fourth is the last for some time that votes
constexpr int kCallsAfter = 3;
constexpr std::size_t kElements = 600;

class Calls {
 public:
  explicit Calls(Collective kind)
      : send_({Place::device_a, 0}, kElements, 1), recv_({Place::device_a, 0}, kElements, 1) {
    args_.kind = kind;
    if (is_reduction(kind)) args_.op = Op::sum;
    args_.send = send_.argument();
    args_.recv = recv_.argument();
    send_.fill(std::vector<std::int64_t>(kElements, 1));
  }
  const CollectiveArgs& args() const { return args_; }

 private:
  UserBuffer send_;
  UserBuffer recv_;
  CollectiveArgs args_{};
};

void await(Rank& rank, const std::atomic<int>& ended, int ranks) {
  while (ended < ranks) {
    rank.scheduler.event();  // time passes
    rank.scheduler.yield();
  }
}

// Begins a call, goes some way, and then does nothing until the others are through. What it leaves
// behind is the process's, and goes with it: here that is cleaned up at the end.
void die(Rank& rank, const Calls& calls, std::uint64_t polls, const std::atomic<int>& ended) {
  Request request = rank.mpi.collective(Form::nonblocking, kWorld, calls.args());
  MessageStatus status;
  for (std::uint64_t poll = 0; poll < polls && request != kNoRequest; ++poll)
    (void)rank.mpi.test(request, status);
  dead_rank = rank.world_rank;
  await(rank, ended, kRanks - 1);
  if (request != kNoRequest) rank.mpi.wait(request, status);
}

void survive(Rank& rank, const Calls& calls) {
  for (int call = 0; call < kCallsAfter; ++call) {
    rank.shim->last_error = {};
    (void)rank.mpi.collective(Form::blocking, kWorld, calls.args());
  }
  if (rank.shim->last_error.code() != StatusCode::device_error)
    rank.scheduler.fail("no error: " + rank.shim->last_error.message());
}

void expect_errors(Collective kind, const ShimOptions& shim) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.mutation = Mutation::rank_dies;
    std::atomic<int> ended = 0;
    const std::string message = run_ranks(kRanks, options, shim, [&](Rank& rank) {
      rank.shim->keep_errors = true;
      Calls calls(kind);
      for (int call = 0; call < kCallsBefore; ++call)
        (void)rank.mpi.collective(Form::blocking, kWorld, calls.args());
      if (dead_rank < 0 && !rank.shim->last_error.ok())
        rank.scheduler.fail(rank.shim->last_error.message());
      if (rank.world_rank == kMortal) {
        die(rank, calls, seed * 3 % 50, ended);
      } else {
        survive(rank, calls);
      }
      // Memory that peers have open stays until they have closed it; here it goes with `calls`.
      ++ended;
      await(rank, ended, kRanks);
    });
    ASSERT_EQ(message, "") << "seed " << seed;
  }
}

ShimOptions with_regions() {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  return shim;
}

TEST(RankDeath, EndsExchangesThroughRegions) {
  expect_errors(Collective::allreduce, with_regions());
  expect_errors(Collective::alltoall, with_regions());
}

TEST(RankDeath, EndsExchangesStraightBetweenBuffers) {
  ShimOptions shim = with_regions();
  shim.exchange.direct = true;
  expect_errors(Collective::allreduce, shim);
}

TEST(RankDeath, EndsExchangesThroughInboxes) {
  ShimOptions shim;
  shim.exchange.lane_bytes = kElements * sizeof(std::int64_t);
  expect_errors(Collective::allreduce, shim);
}

}  // namespace
}  // namespace accord::model
