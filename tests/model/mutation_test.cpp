// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Does the model test have teeth? Each deliberate mistake (mutation.h) must be found, as what it
// is, within a bounded number of random programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <set>
#include <string>

#include "runner.h"
#include "shrink.h"
#include "symptom.h"
#include "user_buffer.h"

namespace accord::model {
namespace {

struct Mistake {
  const char* name;
  Mutation mutation;
  const char* symptom;  // part of the message
};

class Mutations : public testing::TestWithParam<Mistake> {};

// To cut all of them down takes four times as long as to find them: every night. Otherwise the
// first of each symptom.
bool is_cut_down(const std::string& symptom) {
  static std::set<std::string> seen;
  const char* nightly = std::getenv("ACCORD_TEST_NIGHTLY");
  return seen.insert(symptom).second || (nightly != nullptr && std::string(nightly) == "1");
}

TEST_P(Mutations, AreFound) {
  constexpr std::uint64_t kProgramsMax = 1500;
  RunOptions options;
  options.mutation = GetParam().mutation;
  for (std::uint64_t seed = 1; seed <= kProgramsMax; ++seed) {
    const Program program = generate(seed, GeneratorOptions());
    options.seed = seed;
    const std::string message = run(program, options);
    if (message.find(GetParam().symptom) == std::string::npos) continue;
    if (!is_cut_down(name_of(symptom_of(message)))) return;
    // It still is one when cut down to what a person can read.
    const Failure small = shrink(program, options, message);
    std::size_t calls = 0;
    for (const auto& list : small.program.lists) calls += list.size();
    std::printf("found in program %d, %zu calls when cut down: %s\n", static_cast<int>(seed), calls,
                small.text().c_str());
    EXPECT_LE(calls, 40u);
    EXPECT_EQ(name_of(symptom_of(small.message)), name_of(symptom_of(message)));
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
                    Mistake{"SendUndrained", Mutation::send_undrained, "deadlock"},
                    Mistake{"DrainUntaken", Mutation::drain_untaken, "deadlock"},
                    Mistake{"OldEpoch", Mutation::old_epoch, "receive buffer"},
                    Mistake{"LateUnbegun", Mutation::late_unbegun, "before it was begun again"},
                    Mistake{"AwaitOwnBlock", Mutation::await_own_block, "deadlock"},
                    Mistake{"AwaitThoseBehind", Mutation::await_those_behind, "deadlock"},
                    Mistake{"ScanOfAll", Mutation::scan_of_all, "scan, receive buffer"},
                    Mistake{"ExscanWithOwn", Mutation::exscan_with_own, "exscan, receive buffer"},
                    Mistake{"PullOwnLength", Mutation::pull_own_length, "allgatherv, receive"},
                    Mistake{"KeepOldWords", Mutation::keep_old_words, "receive buffer"},
                    Mistake{"ShareSequence", Mutation::share_sequence, "receive buffer"},
                    Mistake{"DeclineAlone", Mutation::decline_alone, "deadlock"},
                    Mistake{"SettleUnread", Mutation::settle_unread, "receive buffer"},
                    Mistake{"LeaveLent", Mutation::leave_lent, "receive buffer"},
                    Mistake{"ReachUnarrived", Mutation::reach_unarrived, "deadlock"},
                    Mistake{"EndUnstored", Mutation::end_unstored, "receive buffer"},
                    Mistake{"RefillUnread", Mutation::refill_unread, "receive buffer"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

// Too rare in random programs: the calls that these need must follow each other directly.

ShimOptions with_regions() {
  ShimOptions shim;
  shim.exchange.node_bytes = 1;
  return shim;
}

ShimOptions with_inboxes() {
  ShimOptions shim;
  shim.exchange.lane_bytes = 1024;
  return shim;
}

std::string first_failure(Mutation mutation, const ShimOptions& shim,
                          const std::function<void(Rank&)>& body, int ranks = 3) {
  constexpr std::uint64_t kSchedules = 200;
  std::string message;
  for (std::uint64_t seed = 1; seed <= kSchedules && message.empty(); ++seed) {
    RunOptions options;
    options.seed = seed;
    options.mutation = mutation;
    message = run_ranks(ranks, options, shim, body);
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
  EXPECT_EQ(first_failure(Mutation::none, with_regions(), body), "");
  EXPECT_NE(first_failure(Mutation::free_in_use, with_regions(), body).find("its owner has freed"),
            std::string::npos);
}

// Calls on the same buffers, which are lent after some: each is used anew as soon as its call is
// complete.
void repeat_alltoall(Rank& rank) {
  UserBuffer send({Place::device_a, 0}, 300, 1);
  UserBuffer recv({Place::device_a, 0}, 300, 1);
  CollectiveArgs alltoall{.kind = Collective::alltoall};
  alltoall.send = send.argument();
  alltoall.recv = recv.argument();
  for (std::int64_t call = 0; call < 16; ++call) {
    const std::vector<std::int64_t> values(300, call);
    send.fill(values);
    (void)rank.mpi.collective(Form::blocking, kWorld, alltoall);
    send.fill(std::vector<std::int64_t>(300, -1));
    const std::string wrong = recv.difference(values);
    if (!wrong.empty()) rank.scheduler.fail("receive buffer: " + wrong);
  }
}

TEST(Mutations, LentBufferLeftWhilePeersReadIt) {
  ShimOptions shim = with_regions();
  shim.exchange.direct = true;
  shim.exchange.pairs = true;
  EXPECT_EQ(first_failure(Mutation::none, shim, repeat_alltoall), "");
  EXPECT_NE(first_failure(Mutation::leave_lent, shim, repeat_alltoall).find("receive buffer"),
            std::string::npos);
}

TEST(Mutations, LentBufferLeftWhilePeersWriteIt) {
  ShimOptions shim = with_regions();
  shim.exchange.direct = true;
  EXPECT_EQ(first_failure(Mutation::none, shim, repeat_alltoall), "");
  for (const Mutation mistake : {Mutation::settle_unread, Mutation::reach_unarrived}) {
    EXPECT_NE(first_failure(mistake, shim, repeat_alltoall), "")
        << "mistake " << static_cast<int>(mistake);
  }
}

// Long enough for four pieces.
TEST(Mutations, SlotsOfAReductionThatIsSpread) {
  constexpr std::size_t kElements = 6000;
  const auto body = [](Rank& rank) {
    UserBuffer send({Place::device_a, 0}, kElements, 1);
    UserBuffer recv({Place::device_a, 0}, kElements, 1);
    CollectiveArgs reduce{.kind = Collective::allreduce, .op = Op::sum};
    reduce.send = send.argument();
    reduce.recv = recv.argument();
    std::vector<std::int64_t> values(kElements);
    for (std::int64_t call = 0; call < 6; ++call) {
      std::iota(values.begin(), values.end(), call);
      send.fill(values);
      (void)rank.mpi.collective(Form::blocking, kWorld, reduce);
      for (std::int64_t& value : values) value *= 2;
      const std::string wrong = recv.difference(values);
      if (!wrong.empty()) rank.scheduler.fail("receive buffer: " + wrong);
    }
  };
  ShimOptions shim = with_regions();
  shim.exchange.direct = true;
  shim.exchange.spread = true;
  EXPECT_EQ(first_failure(Mutation::none, shim, body, 2), "");
  for (const Mutation mistake :
       {Mutation::reduce_unfetched, Mutation::refetch_unreduced, Mutation::end_unstored}) {
    const std::string message = first_failure(mistake, shim, body, 2);
    EXPECT_NE(message.find("receive buffer"), std::string::npos)
        << "mistake " << static_cast<int>(mistake) << ": " << message;
  }
}

// Blocks that differ, in place: where the result of a rank goes, its own contribution lies a little
// further on.
TEST(Mutations, ResultWrittenOverWhatItIsReducedFrom) {
  const std::vector<std::size_t> counts = {20, 300, 60};
  constexpr std::size_t kAll = 380;
  const auto body = [&](Rank& rank) {
    std::vector<std::int64_t> values(kAll);
    std::iota(values.begin(), values.end(), 1);
    std::vector<std::int64_t> expected = values;
    const auto me = static_cast<std::size_t>(rank.world_rank);
    const auto first =
        std::accumulate(counts.begin(), counts.begin() + rank.world_rank, std::size_t{0});
    for (std::size_t i = 0; i < counts[me]; ++i) expected[i] = 3 * values[first + i];
    UserBuffer recv({Place::device_a, 0}, kAll, 1);
    CollectiveArgs reduce{.kind = Collective::reduce_scatter, .op = Op::sum, .in_place = true};
    reduce.recv = recv.argument();
    for (const std::size_t count : counts)
      reduce.blocks_bytes.push_back(count * sizeof(std::int64_t));
    for (int call = 0; call < 4; ++call) {
      recv.fill(values);
      (void)rank.mpi.collective(Form::blocking, kWorld, reduce);
      const std::string wrong = recv.difference(expected);
      if (!wrong.empty()) rank.scheduler.fail("receive buffer: " + wrong);
    }
  };
  EXPECT_EQ(first_failure(Mutation::none, with_regions(), body), "");
  EXPECT_NE(
      first_failure(Mutation::reduce_overwritten, with_regions(), body).find("receive buffer"),
      std::string::npos);
}

// What a rank sends one root, and then, without waiting for that, the other.
TEST(Mutations, RegionRefilledForAnotherRank) {
  const auto body = [](Rank& rank) {
    UserBuffer send({Place::device_a, 0}, 100, 1);
    UserBuffer recv({Place::device_a, 0}, 300, 1);
    for (std::int64_t call = 0; call < 8; ++call) {
      CollectiveArgs gather{.kind = Collective::gather, .root = 1 + static_cast<int>(call % 2)};
      send.fill(std::vector<std::int64_t>(100, call));
      gather.send = send.argument();
      if (rank.world_rank == gather.root) gather.recv = recv.argument();
      (void)rank.mpi.collective(Form::blocking, kWorld, gather);
      if (rank.world_rank != gather.root) continue;
      const std::string wrong = recv.difference(std::vector<std::int64_t>(300, call));
      if (!wrong.empty()) rank.scheduler.fail("receive buffer: " + wrong);
    }
  };
  ShimOptions shim = with_regions();
  shim.exchange.pairs = true;
  EXPECT_EQ(first_failure(Mutation::none, shim, body), "");
  EXPECT_NE(first_failure(Mutation::refill_unread, shim, body).find("receive buffer"),
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
  EXPECT_EQ(first_failure(Mutation::none, with_regions(), body), "");
  EXPECT_NE(first_failure(Mutation::no_poke, with_regions(), body).find("deadlock"),
            std::string::npos);
}

// Blocks of one rank, in place, in the memory and with the gaps of `end`.
class Blocks {
 public:
  static constexpr int kRanks = 3;

  explicit Blocks(const End& end) : buffer_(end, kRanks * kElements, 1) {}

  CollectiveArgs arguments(Collective kind) const {
    CollectiveArgs args{.kind = kind};
    args.in_place = true;
    args.recv = buffer_.argument();
    return args;
  }
  // Block number `block` holds `values(block)` throughout.
  void fill(const std::function<std::int64_t(int)>& values) { buffer_.fill(all(values)); }
  void expect(Rank& rank, const std::function<std::int64_t(int)>& values) const {
    const std::string wrong = buffer_.difference(all(values));
    if (!wrong.empty()) rank.scheduler.fail("receive buffer: " + wrong);
  }

 private:
  static constexpr std::size_t kElements = 9;

  static std::vector<std::int64_t> all(const std::function<std::int64_t(int)>& values) {
    std::vector<std::int64_t> result;
    for (int block = 0; block < kRanks; ++block)
      result.insert(result.end(), kElements, values(block));
    return result;
  }

  UserBuffer buffer_;
};

// What has been received lies where the blocks to send were.
TEST(Mutations, InboxExchangeThatSendsAgain) {
  const auto body = [](Rank& rank) {
    const auto block = [](int from, int to) { return 100 * from + to; };
    for (int call = 0; call < 3; ++call) {
      Blocks blocks({Place::device_a, 0});
      blocks.fill([&](int peer) { return block(rank.world_rank, peer); });
      (void)rank.mpi.collective(Form::blocking, kWorld, blocks.arguments(Collective::alltoall));
      blocks.expect(rank, [&](int peer) { return block(peer, rank.world_rank); });
    }
  };
  EXPECT_EQ(first_failure(Mutation::none, with_inboxes(), body), "");
  EXPECT_NE(first_failure(Mutation::send_again, with_inboxes(), body).find("receive buffer"),
            std::string::npos);
}

// The blocks of the others pass through page-locked memory, in which the root's own is not.
TEST(Mutations, RootThatOverwritesItsOwnBlock) {
  const auto body = [](Rank& rank) {
    Blocks blocks({Place::device_a, 1});
    UserBuffer own({Place::device_a, 0}, 9, 1);
    for (int call = 0; call < 3; ++call) {
      const auto value = [call](int from) { return 100 * call + from; };
      blocks.fill(value);
      own.fill(std::vector<std::int64_t>(9, value(rank.world_rank)));
      CollectiveArgs gather = blocks.arguments(Collective::gather);
      gather.root = 1;
      if (rank.world_rank != gather.root) {
        gather.in_place = false;
        gather.send = own.argument();
        gather.recv = {};
      }
      (void)rank.mpi.collective(Form::blocking, kWorld, gather);
      blocks.expect(rank, value);
    }
  };
  EXPECT_EQ(first_failure(Mutation::none, with_inboxes(), body), "");
  EXPECT_NE(
      first_failure(Mutation::overwrite_own_block, with_inboxes(), body).find("receive buffer"),
      std::string::npos);
}

}  // namespace
}  // namespace accord::model
