// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Tests with several processes: the ranks are forked, rank 0 tells the others one message, and a
// failure of any of them is one of the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace accord::test {

class Rank {
 public:
  Rank(int own, int all, std::vector<int> pipes)
      : rank(own), count(all), pipes_(std::move(pipes)) {}

  // What rank 0 passes, on all ranks.
  template <class T>
  T tell(const T& message) const {
    if (rank == 0) {
      for (int peer = 1; peer < count; ++peer) {
        EXPECT_EQ(static_cast<ssize_t>(sizeof message),
                  write(pipes_[static_cast<std::size_t>(2 * peer + 1)], &message, sizeof message));
      }
      return message;
    }
    T told{};
    EXPECT_EQ(static_cast<ssize_t>(sizeof told),
              read(pipes_[static_cast<std::size_t>(2 * rank)], &told, sizeof told));
    return told;
  }

  const int rank;
  const int count;

 private:
  std::vector<int> pipes_;  // read and write end, of each rank
};

// Ends the children of a test together: a rank that has gone cannot be asked for anything.
class Farewell {
 public:
  Farewell() { EXPECT_TRUE(pipe(done_) == 0 && pipe(release_) == 0); }

  void of_child() {
    close(release_[1]);
    char byte = 0;
    static_cast<void>(write(done_[1], &byte, 1) == 1 && read(release_[0], &byte, 1) == 1);
  }
  // A child that has died instead does not say that it is done.
  void of_parent(int children) {
    close(done_[1]);
    char byte = 0;
    while (children > 0 && read(done_[0], &byte, 1) == 1) --children;
    for (const int end : {done_[0], release_[0], release_[1]}) close(end);
  }

 private:
  int done_[2];
  int release_[2];
};

inline void on_ranks(int count, const std::function<void(const Rank&)>& body) {
  std::vector<int> pipes(static_cast<std::size_t>(2 * count));
  for (std::size_t at = 0; at < pipes.size(); at += 2) ASSERT_EQ(0, pipe(&pipes[at]));
  Farewell farewell;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      body(Rank(rank, count, pipes));
      std::fflush(nullptr);
      farewell.of_child();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  farewell.of_parent(count);
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
  }
  for (const int end : pipes) close(end);
}

}  // namespace accord::test
