// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When ranks vote on the way of a call, what their votes say, and by which call of the host MPI a
// voted call is made.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/stages.h"
#include "coll/run/collective.h"
#include "coll/select/reasons.h"
#include "scenario.h"

namespace accord::model {
namespace {

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

// As soon as it may, where each is known before the next call.
TEST(ModeTable, VotesAgainWhereLongPairsMayCome) {
  core::ModeTable table;
  const core::Key key{1, 2, 3, 0};
  const auto next = [&](core::ModeTable::Before before) {
    const core::Turn turn = table.next(key, before);
    turn.result->votes_again_after = 5;
    turn.result->known = true;
    return turn.votes;
  };
  for (int call = 1; call <= 33; ++call) next(core::ModeTable::Before::under_way);
  const auto any = [](auto) { return true; };
  for (int call = 34; call <= 36; ++call) EXPECT_TRUE(table.next_if(key, any));
  EXPECT_FALSE(table.next_if(key, any));
  EXPECT_FALSE(next(core::ModeTable::Before::under_way));  // 37
  EXPECT_TRUE(next(core::ModeTable::Before::known));
  for (int call = 39; call <= 42; ++call) EXPECT_FALSE(next(core::ModeTable::Before::known));
  EXPECT_TRUE(next(core::ModeTable::Before::known));
}

// The calls that do, where each asks for the next one after `calls`.
std::vector<std::uint64_t> votes_that_ask_again(std::uint64_t after_calls, std::uint64_t calls) {
  core::ModeTable table;
  std::vector<std::uint64_t> votes;
  for (std::uint64_t call = 1; call <= calls; ++call) {
    const core::Turn turn = table.next({1, 2, 3, 0}, core::ModeTable::Before::known);
    turn.result->votes_again_after = after_calls;
    turn.result->known = true;
    if (turn.votes) votes.push_back(call);
  }
  return votes;
}

TEST(ModeTable, AsksForLongPairsMoreSeldomInLongRuns) {
  const std::vector<std::uint64_t> votes = votes_that_ask_again(5, 4096);
  const auto between = [&](std::uint64_t first, std::uint64_t end) {
    return std::ranges::count_if(votes, [&](auto call) { return call >= first && call < end; });
  };
  EXPECT_NEAR(between(64, 128), 64 / 5, 2);
  EXPECT_NEAR(between(1024, 1088), 64 / 17, 2);
  EXPECT_NEAR(between(3000, 3990), 990 / 33, 1);
  EXPECT_EQ(votes_that_ask_again(33, 150),
            (std::vector<std::uint64_t>{1, 2, 4, 8, 16, 32, 64, 64 + 33, 128}));
}

TEST(ModeTable, ForgetsWhatWasVotedBeforeEveryPeriod) {
  core::ModeTable table;
  for (std::uint64_t call = 1; call <= 2 * core::ModeTable::kVotePeriod; ++call) {
    const core::Turn turn = table.next({1, 2, 3, 0});
    const bool forgets = call == 1 || call % core::ModeTable::kVotePeriod == 0;
    if (turn.votes) EXPECT_EQ(turn.before == nullptr, forgets) << call;
  }
}

core::Key key_number(std::size_t number) { return core::Key{1, 0, 0, number}; }

// One round of calls in turn, of `kinds` kinds: how many of them vote.
std::size_t votes_in_round(core::ModeTable& table, std::size_t kinds) {
  std::size_t votes = 0;
  for (std::size_t kind = 0; kind < kinds; ++kind) votes += table.next(key_number(kind)).votes;
  return votes;
}

TEST(ModeTable, HasRoomForThePeriodsOfPrograms) {
  for (const std::size_t kinds : {256, 257, 3000}) {
    core::ModeTable table;
    std::size_t votes = 0;
    for (int round = 0; round < 4; ++round) votes += votes_in_round(table, kinds);
    EXPECT_EQ(3 * kinds, votes);
  }
}

// And no more: what has no room votes.
TEST(ModeTable, KnowsAsManyAsItHasRoomForWhereThereAreMore) {
  for (const std::size_t more : {1, 16, 1000}) {
    core::ModeTable table;
    const std::size_t kinds = core::ModeTable::kKeysMax + more;
    std::size_t votes = 0;
    for (int round = 0; round < 20; ++round) votes = votes_in_round(table, kinds);
    EXPECT_LE(more, votes);
    EXPECT_GT(2 * more, votes);
  }
}

TEST(ModeTable, ForgetsTheSameKeysEverywhere) {
  core::ModeTable here;
  core::ModeTable there;
  for (std::size_t call = 0; call < 4 * core::ModeTable::kKeysMax; ++call) {
    const core::Key key = key_number(call * call % (2 * core::ModeTable::kKeysMax + 1));
    const core::Turn turn = here.next(key);
    ASSERT_EQ(turn.number, there.next(key).number) << call;
  }
}

// Two ranks' boards, and what the first sees.
struct TwoBoards {
  TwoBoards() {
    const auto is_gone = [this](std::size_t) { return peer_is_gone; };
    watches[0].attach(7, boards[0], {nullptr, &boards[1]}, is_gone);
    watches[1].attach(7, boards[1], {&boards[0], nullptr}, is_gone);
  }
  node::CallEntry begin(int rank, std::size_t size_bytes, core::CallWatch::By by) {
    return watches[rank].begin(core::CallMark::of({1, 2, 3, size_bytes}), by);
  }
  // What the first sees of its vote.
  Status ended(std::uint64_t vote, bool& ended) const {
    return watches[0].is_ended(vote, peer_is_gone, ended);
  }
  bool peer_is_gone = false;
  node::CallBoard boards[2];
  core::CallWatch watches[2];
};
constexpr auto kUs = core::CallWatch::By::us;
constexpr auto kHost = core::CallWatch::By::host;

TEST(CallWatch, TellsOtherSizesOnceAllHaveBegun) {
  TwoBoards two;
  for (int call = 0; call < 20; ++call) {
    (void)two.begin(0, 64, kUs);
    (void)two.begin(1, 64, kUs);
  }
  const node::CallEntry mine = two.begin(0, 1000, kUs);
  EXPECT_FALSE(two.watches[0].look(mine).any());
  (void)two.begin(1, 500, kUs);
  const auto found = two.watches[0].look(mine);
  EXPECT_EQ(found.status.code(), StatusCode::mismatch);
  EXPECT_NE(found.status.message().find("rank 1 made one of 500 bytes"), std::string::npos);
  EXPECT_FALSE(found.by_host);
}

TEST(CallWatch, TellsWhoIsInsideTheHostMpi) {
  TwoBoards two;
  (void)two.begin(1, 64, kHost);
  const node::CallEntry mine = two.begin(0, 64, kUs);
  (void)two.begin(1, 128, kHost);  // who is through with it may go on
  const auto found = two.watches[0].look(mine);
  EXPECT_TRUE(found.status.ok());
  EXPECT_TRUE(found.by_host);
}

TEST(CallWatch, FindsNothingInCallsThatAreAlikeOrForgotten) {
  TwoBoards two;
  const node::CallEntry mine = two.begin(0, 64, kUs);
  for (int call = 0; call < 20; ++call) {
    (void)two.begin(1, 64, kUs);
    EXPECT_FALSE(two.watches[0].look(mine).any()) << call;
  }
  EXPECT_FALSE(core::CallWatch().look({}).any());
}

TEST(CallWatch, AVoteHasEndedOnceItHasOnAllRanks) {
  TwoBoards two;
  bool ended = false;
  for (std::uint64_t vote = 1; vote < 5; ++vote) {
    for (core::CallWatch& watch : two.watches) ASSERT_EQ(watch.begin_vote(), vote);
    two.watches[0].end_vote(vote);
    EXPECT_TRUE(two.ended(vote, ended).ok());
    EXPECT_FALSE(ended);
    two.watches[1].end_vote(vote);
    EXPECT_TRUE(two.ended(vote, ended).ok());
    EXPECT_TRUE(ended);
  }
}

TEST(CallWatch, NobodyWaitsForTheVoteOfARankThatIsGone) {
  TwoBoards two;
  for (core::CallWatch& watch : two.watches) (void)watch.begin_vote();
  two.watches[0].end_vote(1);
  two.peer_is_gone = true;
  bool ended = false;
  EXPECT_TRUE(two.ended(1, ended).ok());
  EXPECT_TRUE(ended);
}

TEST(CallWatch, WhoLeavesHasHadNoErrorInEarlierCalls) {
  TwoBoards two;
  const node::CallEntry first = two.begin(0, 64, kUs);
  (void)two.begin(1, 64, kUs);
  for (core::CallWatch& watch : two.watches) (void)watch.begin_vote();
  for (core::CallWatch& watch : two.watches) watch.end_vote(1);
  const node::CallEntry second = two.begin(0, 64, kUs);
  const node::CallEntry left = two.begin(1, 64, kUs);
  for (core::CallWatch& watch : two.watches) (void)watch.begin_vote();
  two.watches[1].leave(left);
  bool ended = false;
  EXPECT_TRUE(two.ended(1, ended).ok());
  EXPECT_TRUE(ended);
  EXPECT_EQ(two.ended(2, ended).code(), StatusCode::mismatch);
  EXPECT_FALSE(two.watches[0].look(first).any());
  EXPECT_TRUE(two.watches[0].look(second).has_left);
  EXPECT_TRUE(two.watches[0].refusal().ok());
  EXPECT_FALSE(two.watches[1].refusal().ok());
}

// The peer sees it in a call that the rank which has left never begins.
TEST(CallWatch, SeesThatARankHasLeftInLaterCalls) {
  TwoBoards two;
  two.watches[1].leave(two.begin(1, 64, kUs));
  (void)two.begin(0, 64, kUs);
  EXPECT_TRUE(two.watches[0].look(two.begin(0, 64, kUs)).has_left);
}

// Lines of communicators that are freed are taken again, and nobody waits for what they said.
TEST(VoteBoard, HasRoomForManyCommunicators) {
  node::VoteBoard board;
  for (std::uint64_t comm = 1; comm < 10000; ++comm) {
    node::VoteLine* const line = board.take(comm);
    ASSERT_NE(line, nullptr) << comm;
    EXPECT_EQ(board.read(comm).votes, 0u);
    line->votes.store(comm);
    EXPECT_EQ(board.read(comm).votes, comm);
    node::VoteBoard::give_back(*line);
  }
  EXPECT_FALSE(board.read(1).anything);
}

TEST(VoteBoard, KeepsThatARankHasLeft) {
  node::VoteBoard board;
  node::VoteLine* const line = board.take(3);
  line->left_at.store(9);
  node::VoteBoard::give_back(*line);
  for (std::uint64_t comm = 10; comm < 10000; ++comm)
    if (node::VoteLine* const other = board.take(comm)) node::VoteBoard::give_back(*other);
  EXPECT_EQ(board.read(3).left_at, 9u);
}

// Without room nothing is said, and nobody waits for it.
TEST(VoteBoard, SaysNothingOfCommunicatorsWithoutRoom) {
  node::VoteBoard board;
  std::uint64_t comm = 1;
  while (board.take(comm) != nullptr) ++comm;
  EXPECT_GT(comm, 500u);
  EXPECT_FALSE(board.read(comm).anything);
  EXPECT_TRUE(board.read(1).anything);
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
  EXPECT_FALSE(mixed.all_short());
  const core::Vote short_one =
      combine({core::Vote::cast(key, Ballot::host), core::Vote::cast(key, Ballot::device_short)});
  EXPECT_TRUE(short_one.any_device() && short_one.any_host() && short_one.all_short());
  EXPECT_FALSE(combine({short_one, core::Vote::cast(key, Ballot::device)}).all_short());
  const core::Vote near_one =
      combine({short_one, core::Vote::cast(key, Ballot::device_near), short_one});
  EXPECT_TRUE(near_one.any_device() && near_one.all_near() && !near_one.all_short());
  EXPECT_FALSE(combine({near_one, core::Vote::cast(key, Ballot::device)}).all_near());
  const core::Vote shortest = core::Vote::cast(key, Ballot::device_shortest);
  EXPECT_TRUE(shortest.any_device() && shortest.all_short() && shortest.all_shortest());
  EXPECT_FALSE(combine({shortest, short_one}).all_shortest());
  const core::Vote neutral =
      combine({core::Vote::cast(key, Ballot::neutral), core::Vote::cast(key, Ballot::neutral)});
  EXPECT_FALSE(neutral.any_device() || neutral.any_host());
  EXPECT_FALSE(combine({core::Vote::cast(key, Ballot::host), core::Vote::cast(other, Ballot::host)})
                   .agreed());
}

// A call on memory of the CPU alone, whose ranks learn by a vote that the host MPI is to make it.
struct VotedPlain {
  explicit VotedPlain(stages::Story story = {}) {
    coll::CollArgs made;
    made.key.size_bytes = made.size_bytes = 64;
    made.ballot = core::Ballot::host;
    made.host.issue_vote = [](const core::Vote& mine, core::Vote& all, core::HostRequest& request) {
      all = mine;
      request = kDoneRequest;
      return 0;
    };
    call.args = std::move(made);
    call.story = std::move(story);
    call.block = [this](const void*, void*) {
      ++blocking;
      return 0;
    };
    call.issue = [this](const void*, void*, core::HostRequest& request) {
      ++nonblocking;
      request = kDoneRequest;
      return 0;
    };
  }
  coll::CollectiveCall call;
  int blocking = 0;
  int nonblocking = 0;
};

// A defect of the host MPI's non-blocking form must stay out of programs that do not call it.
TEST(Vote, ABlockingCallIsMadeByTheBlockingForm) {
  const std::string message = run_ranks(1, {}, {}, [](Rank& rank) {
    const auto queue = std::make_shared<core::CommQueue>();
    for (int call = 1; call <= 3; ++call) {
      VotedPlain voted;
      bool repeatable = false;
      const Status status =
          coll::run_collective(rank.shim->engine(), queue, voted.call, repeatable);
      if (!status.ok() || voted.blocking != 1 || voted.nonblocking != 0)
        rank.scheduler.fail("call " + std::to_string(call) + " went by another form");
      if (coll::last_path() != std::string("staged")) rank.scheduler.fail("another way");
    }
    VotedPlain voted;
    core::Requests requests;
    core::HostRequest request = kNoRequest;
    const Status status = coll::start_collective(rank.shim->engine(), requests, queue,
                                                 std::move(voted.call), request);
    MessageStatus ended;
    rank.mpi.wait(request, ended);
    if (!status.ok() || voted.blocking != 0 || voted.nonblocking != 1)
      rank.scheduler.fail("a non-blocking call went by another form");
  });
  EXPECT_EQ(message, "");
}

// The vote is an operation's, what follows its waiter's.
TEST(Vote, TheStoryOfACallGoesOnAfterIt) {
  stages::Recorder recorder({.file_prefix = "kept"});
  stages::listening = true;
  const std::string message = run_ranks(1, {}, {}, [&](Rank& rank) {
    VotedPlain voted(std::make_shared<stages::Call>(recorder, "allreduce"));
    const auto queue = std::make_shared<core::CommQueue>();
    bool repeatable = false;
    if (!coll::run_collective(rank.shim->engine(), queue, voted.call, repeatable).ok())
      rank.scheduler.fail("an error");
  });
  stages::listening = false;
  EXPECT_EQ(message, "");
  const std::string trace = recorder.json(0, "test");
  for (const stages::Stage stage : {stages::Stage::vote, stages::Stage::host_mpi})
    EXPECT_NE(std::string::npos, trace.find(stages::name(stage))) << trace;
}

TEST(Vote, TellsWhyACallGoesTheWayItDoes) {
  stages::Recorder recorder({.lines = true, .file_prefix = {}});
  testing::internal::CaptureStderr();
  const std::string message = run_ranks(1, {}, {}, [&](Rank& rank) {
    VotedPlain voted(std::make_shared<stages::Call>(recorder, "allreduce"));
    const auto queue = std::make_shared<core::CommQueue>();
    bool repeatable = false;
    if (!coll::run_collective(rank.shim->engine(), queue, voted.call, repeatable).ok())
      rank.scheduler.fail("an error");
  });
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(message, "");
  const std::string reason = fmt::format("this call votes: {}", coll::reason::kAllHost);
  EXPECT_NE(std::string::npos, lines.find(reason)) << lines;
}

}  // namespace
}  // namespace accord::model
