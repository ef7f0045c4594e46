// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Nodes of pretence: which rank is on which, and that their numbers differ.
#include "node/node_number.h"

#include <gtest/gtest.h>

#include <vector>

namespace accord::node {
namespace {

// Of ranks 0 to 5; -1: the whole machine.
std::vector<int> parts(std::string_view split) {
  std::vector<int> found;
  for (int rank = 0; rank < 6; ++rank) {
    std::optional<int> part;
    EXPECT_TRUE(part_of(split, rank, part).ok()) << split;
    found.push_back(part.value_or(-1));
  }
  return found;
}

TEST(node_split, says_which_ranks_share_a_node) {
  EXPECT_EQ(parts("off"), (std::vector<int>{-1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(parts("2"), (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(parts("0,0,0,1"), (std::vector<int>{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(parts("0,1,0,1,1,7"), (std::vector<int>{0, 1, 0, 1, 1, 7}));
}

TEST(node_split, takes_no_nonsense) {
  for (const char* split : {"", "0", "-1", "two", "0,", "0,,1", "0;1", "1,-1", "2 "}) {
    std::optional<int> part;
    const Status status = part_of(split, 0, part);
    EXPECT_EQ(status.code(), StatusCode::invalid_argument) << split;
    EXPECT_FALSE(part) << split;
  }
}

TEST(node_split, gives_each_part_a_number_of_its_own) {
  const std::uint64_t whole = node_number();
  enter_part(0);
  const std::uint64_t first = node_number();
  EXPECT_EQ(node_number(), first);
  enter_part(1);
  EXPECT_NE(node_number(), first);
  EXPECT_NE(first, whole);
}

}  // namespace
}  // namespace accord::node
