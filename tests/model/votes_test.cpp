// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When ranks vote on the way of a call, and what their votes say.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/agreement.h"

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
