// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/device_claim.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

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

// A process of `user` that holds a name of a claim; it neither uses the device nor answers.
class Squatter {
 public:
  Squatter(std::uint64_t device, uid_t user) {
    const std::string name = claim_name(device, 0);
    int ready[2];
    if (pipe(ready) != 0 || pipe(finish_) != 0) return;
    child_ = fork();
    char byte = 'y';
    if (child_ == 0) {
      close(finish_[1]);
      if (setuid(user) != 0 || !listen_at(name)) byte = 'n';
      (void)!write(ready[1], &byte, 1);
      (void)!read(finish_[0], &byte, 1);
      _exit(0);
    }
    holds = read(ready[0], &byte, 1) == 1 && byte == 'y';
    close(ready[0]);
    close(ready[1]);
  }
  ~Squatter() {
    close(finish_[0]);
    close(finish_[1]);
    waitpid(child_, nullptr, 0);
  }
  bool holds = false;

 private:
  static bool listen_at(const std::string& name) {
    const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size_bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size_bytes) == 0 &&
           listen(descriptor, 1) == 0;
  }
  pid_t child_ = -1;
  int finish_[2] = {-1, -1};
};

TEST(DeviceClaim, another_user_who_holds_the_name_keeps_nobody_out) {
  if (getuid() != 0) GTEST_SKIP() << "takes another user";
  constexpr uid_t kNobody = 65534;
  const Squatter squatter(kDevice + 5, kNobody);
  ASSERT_TRUE(squatter.holds);
  EXPECT_OK(claim_device(kDevice + 5));
  EXPECT_EQ(StatusCode::unsupported, claim_elsewhere(kDevice + 5));  // this user's claims count
}

TEST(DeviceClaim, a_name_at_which_nobody_listens_keeps_nobody_out) {
  const std::string name = claim_name(kDevice + 6, 0);
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(0, bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size_bytes));
  EXPECT_OK(claim_device(kDevice + 6));
  close(descriptor);
}

}  // namespace
}  // namespace accord::device
