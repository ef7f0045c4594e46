// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Each case is a child process: the level is read once, and what counts is what arrives on stderr.
#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support.h"

namespace accord {
namespace {

// Text that `body` writes to stderr in a process with ACCORD_LOG=level (null: unset).
std::string written(const char* level, void (*body)()) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    level == nullptr ? unsetenv("ACCORD_LOG") : setenv("ACCORD_LOG", level, 1);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t length = 0; (length = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(length));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "child failed: " + text;
}

void write_all() {
  log::error("e {}", 1);
  log::warn("w {}", 2);
  log::info("i {}", 3);
  log::debug("d {}", 4);
  log::message(log::Level::trace, "t {}", 5);
}

TEST(log, default_is_warn) {
  EXPECT_EQ("accord: error: e 1\naccord: warn: w 2\n", written(nullptr, write_all));
}

TEST(log, levels) {
  EXPECT_EQ("accord: error: e 1\n", written("error", write_all));
  EXPECT_EQ("accord: error: e 1\naccord: warn: w 2\naccord: info: i 3\n",
            written("info", write_all));
  EXPECT_EQ(
      "accord: error: e 1\naccord: warn: w 2\naccord: info: i 3\naccord: debug: d 4\n"
      "accord: trace: t 5\n",
      written("trace", write_all));
}

TEST(log, bad_level_is_the_default) {
  EXPECT_EQ("accord: error: e 1\naccord: warn: w 2\n", written("loud", write_all));
}

TEST(log, rank_comes_first) {
  EXPECT_EQ("accord: warn: before\naccord: warn: [rank 3] message\n", written("warn", [] {
              log::warn("before");
              log::set_rank(3);
              log::warn("message");
            }));
}

// Usable in destructors of static objects, which run after everything else.
struct LateTalker {
  ~LateTalker() {
    if (speaks) log::warn("late");
  }
  bool speaks = false;
};
LateTalker late_talker;

TEST(log, usable_while_the_process_exits) {
  EXPECT_EQ("accord: warn: late\n", written("warn", [] {
              late_talker.speaks = true;
              exit(0);
            }));
}

TEST(log, closed_stderr_does_no_harm) {
  EXPECT_EQ("", written("trace", [] {
              close(STDERR_FILENO);
              write_all();
            }));
}

TEST(log, long_messages_arrive_whole) {
  const std::string text = written("warn", [] { log::warn("{}", std::string(200000, 'x')); });
  std::string expected = "accord: warn: ";
  expected.append(200000, 'x').append("\n");
  EXPECT_EQ(expected, text);
}

}  // namespace
}  // namespace accord
