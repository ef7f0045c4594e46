// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/device_claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

namespace accord::device {
namespace {

// What claim_device says in another process, which then ends.
StatusCode claim_elsewhere(std::uint64_t device) {
  const pid_t child = fork();
  if (child == 0) _exit(static_cast<int>(claim_device(device).code()));
  int status = 0;
  waitpid(child, &status, 0);
  return static_cast<StatusCode>(WEXITSTATUS(status));
}

const auto kDevice = static_cast<std::uint64_t>(getpid()) << 20;  // of this run of the test

TEST(DeviceClaim, one_process_at_a_time) {
  EXPECT_EQ(StatusCode::ok, claim_elsewhere(kDevice));  // and gives it up by ending
  EXPECT_OK(claim_device(kDevice));
  EXPECT_OK(claim_device(kDevice));
  EXPECT_OK(claim_device(kDevice + 1));
  EXPECT_EQ(StatusCode::ok, claim_elsewhere(kDevice + 2));
}

TEST(DeviceClaim, another_process_is_refused) {
  int ready[2];
  int finish[2];
  ASSERT_EQ(0, pipe(ready));
  ASSERT_EQ(0, pipe(finish));
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    byte = claim_device(kDevice + 3).ok() ? 'y' : 'n';
    (void)!write(ready[1], &byte, 1);
    (void)!read(finish[0], &byte, 1);
    _exit(0);
  }
  ASSERT_EQ(1, read(ready[0], &byte, 1));
  EXPECT_EQ('y', byte);
  EXPECT_CODE(unsupported, claim_device(kDevice + 3));
  ASSERT_EQ(1, write(finish[1], &byte, 1));
  waitpid(child, nullptr, 0);
  EXPECT_OK(claim_device(kDevice + 3));
}

TEST(DeviceClaim, a_child_that_lives_on_has_none_of_its_parents) {
  int ready[2];
  int finish[2];
  ASSERT_EQ(0, pipe(ready));
  ASSERT_EQ(0, pipe(finish));
  const pid_t parent = fork();
  if (parent == 0) {
    const bool claimed = claim_device(kDevice + 4).ok();
    if (fork() != 0) _exit(claimed ? 0 : 1);
    close(finish[1]);
    char byte = 'r';
    (void)!write(ready[1], &byte, 1);
    (void)!read(finish[0], &byte, 1);  // until the test closes the other end
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(parent, waitpid(parent, &status, 0));
  EXPECT_EQ(0, status);
  char byte = 0;
  ASSERT_EQ(1, read(ready[0], &byte, 1));
  EXPECT_OK(claim_device(kDevice + 4));
  close(finish[1]);
}

}  // namespace
}  // namespace accord::device
