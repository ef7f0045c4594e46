// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Does the model test have teeth? Each deliberate mistake (mutation.h) must be found, as what it
// is, within a bounded number of random programs.
#include <gtest/gtest.h>

#include "runner.h"
#include "shrink.h"
#include "user_buffer.h"

namespace accord::model {
namespace {

struct Mistake {
  const char* name;
  Mutation mutation;
  const char* symptom;  // part of the message
};

class Mutations : public testing::TestWithParam<Mistake> {};

TEST_P(Mutations, AreFound) {
  constexpr std::uint64_t kProgramsMax = 400;
  RunOptions options;
  options.mutation = GetParam().mutation;
  for (std::uint64_t seed = 1; seed <= kProgramsMax; ++seed) {
    const Program program = generate(seed, GeneratorOptions());
    options.seed = seed;
    const std::string message = run(program, options);
    if (message.find(GetParam().symptom) == std::string::npos) continue;
    // It still is one when cut down to what a person can read.
    const Failure small = shrink(program, options, message);
    std::size_t calls = 0;
    for (const auto& list : small.program.lists) calls += list.size();
    std::printf("found in program %d, %zu calls when cut down: %s\n", static_cast<int>(seed), calls,
                small.text().c_str());
    EXPECT_LE(calls, 30u);
    return;
  }
  FAIL() << "not found in " << kProgramsMax << " programs";
}

INSTANTIATE_TEST_SUITE_P(
    Model, Mutations,
    testing::Values(Mistake{"BlockWithoutProgress", Mutation::block_without_progress, "deadlock"},
                    Mistake{"NoProgressThread", Mutation::no_progress_thread, "deadlock"},
                    Mistake{"SkipQueue", Mutation::skip_queue, "matched different calls"},
                    Mistake{"LatestMode", Mutation::latest_mode, "matched different calls"},
                    Mistake{"NoFinish", Mutation::no_finish, "receive buffer"},
                    Mistake{"LocalForm", Mutation::local_form, "matched different calls"},
                    Mistake{"ReuseUndrained", Mutation::reuse_undrained, "receive buffer"},
                    Mistake{"PublishUnfilled", Mutation::publish_unfilled, "receive buffer"},
                    Mistake{"ReduceUnfilled", Mutation::reduce_unfilled, "receive buffer"},
                    Mistake{"PublishUnreduced", Mutation::publish_unreduced, "receive buffer"},
                    Mistake{"PullUnready", Mutation::pull_unready, "receive buffer"},
                    Mistake{"PullUnreduced", Mutation::pull_unreduced, "receive buffer"},
                    Mistake{"DrainUnpulled", Mutation::drain_unpulled, "receive buffer"},
                    Mistake{"DeclineAlone", Mutation::decline_alone, "deadlock"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

// Too rare in random programs: the calls that these two need must follow each other directly.

std::string first_failure(Mutation mutation, const std::function<void(Rank&)>& body) {
  constexpr std::uint64_t kSchedules = 200;
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  std::string message;
  for (std::uint64_t seed = 1; seed <= kSchedules && message.empty(); ++seed) {
    RunOptions options;
    options.seed = seed;
    options.mutation = mutation;
    message = run_ranks(3, options, shim, body);
  }
  return message;
}

void broadcast(Rank& rank, Comm comm) {
  UserBuffer data({Place::device_a, 0}, 100, 1);
  CollectiveArgs bcast{.kind = Collective::bcast};
  bcast.recv = data.argument();
  (void)rank.mpi.collective(Form::blocking, comm, bcast);
}

// A root is done with a broadcast while its peers still fetch from its region.
TEST(Mutations, RegionFreedWhilePeersReadIt) {
  const auto body = [](Rank& rank) {
    Comm comm = kNoComm;
    CollectiveArgs dup{.kind = Collective::dup};
    dup.created = &comm;
    (void)rank.mpi.collective(Form::blocking, kWorld, dup);
    for (int call = 0; call < 3; ++call) broadcast(rank, comm);
    (void)rank.mpi.collective(Form::blocking, comm, CollectiveArgs{.kind = Collective::free});
  };
  EXPECT_EQ(first_failure(Mutation::none, body), "");
  EXPECT_NE(first_failure(Mutation::free_in_use, body).find("its owner has freed"),
            std::string::npos);
}

// A message under way needs its sender's host MPI, while the sender waits in the third broadcast
// (which needs no vote, hence no host call) for the receiver.
TEST(Mutations, HostMpiThatStandsStillInAnExchange) {
  const auto body = [](Rank& rank) {
    UserBuffer token({Place::host, 0}, 1, 1);
    MessageStatus status;
    Request request = kNoRequest;
    for (int call = 0; call < 2; ++call) broadcast(rank, kWorld);
    if (rank.world_rank == 1)
      request = rank.mpi.isend(kWorld, 0, 5, token.argument(), UserMpi::Send::synchronous);
    if (rank.world_rank == 0) (void)rank.mpi.recv(kWorld, 1, 5, token.argument());
    broadcast(rank, kWorld);
    if (rank.world_rank == 1) rank.mpi.wait(request, status);
  };
  EXPECT_EQ(first_failure(Mutation::none, body), "");
  EXPECT_NE(first_failure(Mutation::no_poke, body).find("deadlock"), std::string::npos);
}

}  // namespace
}  // namespace accord::model
