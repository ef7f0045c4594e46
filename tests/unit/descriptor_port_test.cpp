// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// File descriptors between processes: what is sent arrives as that descriptor, for whom it is
// meant, from the same user only, also where PID and network namespaces differ; nothing leaks and
// nothing waits.
#include "node/descriptor_port.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>

#include "node/life_line.h"
#include "support.h"

namespace accord::node {
namespace {

constexpr ParcelLabel kLabel{.from = 3, .item = 5, .generation = 7};

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

Descriptor file_with(int value) {
  Descriptor file(memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(4, pwrite(file.number(), &value, sizeof value, 0));
  return file;
}
int value_in(const Descriptor& file) {
  int value = -1;
  return pread(file.number(), &value, sizeof value, 0) == sizeof value ? value : -1;
}

Status send(DescriptorPort& from, const PortAddress& to, const Descriptor& file, bool& sent,
            const ParcelLabel& label = kLabel) {
  const int number = file.number();
  return from.send(to, label, {&number, 1}, sent);
}

// What is in the one descriptor of the parcel; -1 where none has come.
int taken(DescriptorPort& port, const ParcelLabel& label = kLabel) {
  std::vector<Descriptor> descriptors;
  return port.take(label, descriptors) && descriptors.size() == 1 ? value_in(descriptors[0]) : -1;
}

// The sending process: 0, or which step failed.
int send_as_child(const PortAddress& to, int value) {
  DescriptorPort port;
  if (!port.open().ok()) return 1;
  bool sent = false;
  if (!send(port, to, file_with(value), sent).ok()) return 2;
  return sent ? 0 : 3;
}

TEST(DescriptorPort, AnotherProcessSendsADescriptor) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  const std::size_t before = open_descriptors();
  EXPECT_EQ(-1, taken(port));
  EXPECT_EQ(0, test::in_child([&] { return send_as_child(port.address(), 42); }));
  std::vector<Descriptor> descriptors;
  ASSERT_TRUE(port.take(kLabel, descriptors));
  ASSERT_EQ(1u, descriptors.size());
  EXPECT_EQ(42, value_in(descriptors[0]));
  EXPECT_NE(0, fcntl(descriptors[0].number(), F_GETFD) & FD_CLOEXEC);
  EXPECT_FALSE(port.take(kLabel, descriptors)) << "taken twice";
  descriptors.clear();
  EXPECT_EQ(before, open_descriptors());
}

TEST(DescriptorPort, ParcelsGoWhereTheyAreMeantTo) {
  DescriptorPort first, second;
  ASSERT_OK(first.open());
  ASSERT_OK(second.open());
  const std::size_t before = open_descriptors();
  bool sent = false;
  for (int item = 0; item < 3; ++item) {
    ASSERT_OK(send(first, second.address(), file_with(10 + item), sent, {0, item, 1}));
    EXPECT_TRUE(sent);
  }
  EXPECT_EQ(-1, taken(first, {0, 1, 1}));
  EXPECT_EQ(-1, taken(second, {1, 1, 1}));
  EXPECT_EQ(-1, taken(second, {0, 1, 2}));
  EXPECT_EQ(11, taken(second, {0, 1, 1}));
  // A later one takes the place of an earlier one.
  ASSERT_OK(send(first, second.address(), file_with(20), sent, {0, 2, 2}));
  EXPECT_EQ(-1, taken(second, {0, 2, 1}));
  EXPECT_EQ(20, taken(second, {0, 2, 2}));
  EXPECT_EQ(10, taken(second, {0, 0, 1}));
  EXPECT_EQ(before, open_descriptors());
}

TEST(DescriptorPort, WhatNobodyTakesIsClosedWithThePort) {
  DescriptorPort sender;
  ASSERT_OK(sender.open());
  const std::size_t before = open_descriptors();
  bool sent = false;
  PortAddress gone;
  {
    DescriptorPort receiver;
    ASSERT_OK(receiver.open());
    gone = receiver.address();
    ASSERT_OK(send(sender, gone, file_with(1), sent));
    receiver.receive();
    EXPECT_EQ(before + 1, open_descriptors());
  }
  EXPECT_EQ(before, open_descriptors());
  ASSERT_OK(send(sender, gone, file_with(1), sent));
  sender.receive();
  EXPECT_EQ(before, open_descriptors());
}

TEST(DescriptorPort, AFullReceiverIsToldApartFromOneThatIsGone) {
  int ready[2], finish[2];
  ASSERT_EQ(0, pipe(ready));
  ASSERT_EQ(0, pipe(finish));
  const pid_t child = fork();
  if (child == 0) {  // has a socket and never looks into it
    DescriptorPort port;
    const PortAddress address = port.open().ok() ? port.address() : PortAddress{};
    char end = 0;
    if (write(ready[1], &address, sizeof address) != sizeof address) _exit(1);
    _exit(read(finish[0], &end, 1) == 1 ? 0 : 1);
  }
  PortAddress full;
  ASSERT_EQ(static_cast<ssize_t>(sizeof full), read(ready[0], &full, sizeof full));
  DescriptorPort port;
  ASSERT_OK(port.open());
  const Descriptor file = file_with(1);
  bool sent = true;
  int count = 0;
  for (; sent && count < 100000; ++count) ASSERT_OK(send(port, full, file, sent));
  EXPECT_LT(1, count);
  EXPECT_FALSE(sent);
  ASSERT_EQ(1, write(finish[1], "x", 1));
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_CODE(unsupported, send(port, full, file, sent));
  for (const int end : {ready[0], ready[1], finish[0], finish[1]}) close(end);
}

// The own socket never stays full: whoever sends takes what has come.
TEST(DescriptorPort, ManyParcelsWithinAProcessAllArrive) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  const Descriptor file = file_with(9);
  constexpr int kParcels = 700;
  rlimit limit{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
  if (limit.rlim_cur < kParcels + 100) GTEST_SKIP() << "few descriptors";
  for (int item = 0; item < kParcels; ++item) {
    bool sent = false;
    ASSERT_OK(send(port, port.address(), file, sent, {0, item, 0}));
    ASSERT_TRUE(sent) << item;
  }
  for (int item = 0; item < kParcels; ++item) EXPECT_EQ(9, taken(port, {0, item, 0}));
}

// More lie in the own socket than one look takes.
TEST(DescriptorPort, TheLastOfManyParcelsIsTakenAtOnce) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  const Descriptor file = file_with(9);
  constexpr int kParcels = 270;
  for (int item = 0; item < kParcels; ++item) {
    bool sent = false;
    ASSERT_OK(send(port, port.address(), file, sent, {0, item, 0}));
    ASSERT_TRUE(sent) << item;
  }
  EXPECT_EQ(9, taken(port, {0, kParcels - 1, 0}));
}

TEST(DescriptorPort, WhatIsDroppedIsClosed) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  const std::size_t before = open_descriptors();
  bool sent = false;
  for (const ParcelLabel& label : {ParcelLabel{0, 1, 4}, {0, 2, 4}, {1, 1, 4}, {0, 3, 5}})
    ASSERT_OK(send(port, port.address(), file_with(30), sent, label));
  for (const int item : {1, 3}) port.drop({0, item, 4});
  EXPECT_EQ(before + 3, open_descriptors());
  EXPECT_EQ(-1, taken(port, {0, 1, 4}));
  EXPECT_EQ(30, taken(port, {0, 2, 4}));
  EXPECT_EQ(30, taken(port, {1, 1, 4}));
  EXPECT_EQ(30, taken(port, {0, 3, 5})) << "a later generation";
  EXPECT_EQ(before, open_descriptors());
}

TEST(DescriptorPort, WhatAnotherUserSendsIsDropped) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  DescriptorPort port;
  ASSERT_OK(port.open());
  const std::size_t before = open_descriptors();
  EXPECT_EQ(0, test::in_child(
                   [&] { return setuid(kNobody) != 0 ? 9 : send_as_child(port.address(), 42); }));
  EXPECT_EQ(-1, taken(port));
  EXPECT_EQ(before, open_descriptors());
}

TEST(DescriptorPort, WhatIsNoParcelIsDropped) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  char name[40] = {};
  const int length = std::snprintf(name + 1, sizeof name - 1, "accord-%016llx",
                                   static_cast<unsigned long long>(port.address().process));
  const Descriptor stranger(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::ranges::copy(name, to.sun_path);
  const auto size =
      static_cast<socklen_t>(sizeof to.sun_family + 1 + static_cast<unsigned>(length));
  for (const std::size_t bytes : {0u, 1u, 31u, 32u, 33u, 4000u}) {
    const std::vector<char> junk(bytes, 'x');
    EXPECT_EQ(static_cast<ssize_t>(bytes), sendto(stranger.number(), junk.data(), bytes, 0,
                                                  reinterpret_cast<const sockaddr*>(&to), size));
  }
  bool sent = false;
  ASSERT_OK(send(port, port.address(), file_with(6), sent));
  EXPECT_EQ(6, taken(port));
}

TEST(DescriptorPort, WithoutDescriptorsLeftTheParcelIsLostAndTheNextIsNot) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  const Descriptor file = file_with(8);
  rlimit usual{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &usual));
  rlimit none = usual;
  none.rlim_cur = 0;
  bool sent = false;
  ASSERT_OK(send(port, port.address(), file, sent));
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  EXPECT_EQ(-1, taken(port));
  EXPECT_EQ(0U, DescriptorPort::network());  // not known, and so no other than the peers'
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &usual));
  EXPECT_NE(0U, DescriptorPort::network());
  ASSERT_OK(send(port, port.address(), file, sent));
  EXPECT_EQ(8, taken(port));
}

TEST(DescriptorPort, AnotherPidNamespaceIsNoMatter) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  const int result = test::in_child([&] {
    if (unshare(CLONE_NEWPID) != 0) return 77;
    return test::in_child([&] { return getpid() == 1 ? send_as_child(port.address(), 13) : 9; });
  });
  if (result == 77) GTEST_SKIP() << "namespaces are not allowed here";
  EXPECT_EQ(0, result);
  EXPECT_EQ(13, taken(port));
}

// Abstract names do not reach into another network namespace; a path does, while it is there.
TEST(DescriptorPort, AnotherNetworkNamespaceNeedsAPath) {
  char directory[] = "/tmp/accord-port-test-XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(directory));
  DescriptorPort port;
  ASSERT_OK(port.open());
  const std::uint64_t network = DescriptorPort::network();
  const auto child = [&](const auto& between) {
    return test::in_child([&] {
      if (unshare(CLONE_NEWNET) != 0) return 77;
      if (network != 0 && DescriptorPort::network() == network) return 10;
      DescriptorPort own;
      if (!own.open().ok()) return 11;
      if (!between(own)) return 12;
      bool sent = false;
      if (!send(own, port.address(), file_with(14), sent).ok()) return 13;
      return sent ? 0 : 14;
    });
  };
  const int abstract = child([](DescriptorPort&) { return true; });
  if (abstract == 77) {
    std::filesystem::remove_all(directory);
    GTEST_SKIP() << "namespaces are not allowed here";
  }
  EXPECT_EQ(13, abstract);
  const auto by_path = [&](DescriptorPort& own) { return own.open_path(directory).ok(); };
  EXPECT_EQ(14, child(by_path)) << "the receiver is not there yet";
  ASSERT_OK(port.open_path(directory));
  EXPECT_EQ(0, child(by_path));
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    EXPECT_EQ(std::filesystem::perms::owner_all, entry.status().permissions());
  }
  port.close_path();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_EQ(14, taken(port)) << "what came before the path was closed";
  bool sent = false;
  EXPECT_CODE(unsupported, send(port, port.address(), file_with(1), sent));
  std::filesystem::remove_all(directory);
}

// The time at which it seems to have been made.
void age(const std::filesystem::path& path, std::chrono::seconds by) {
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - by);
}

// But nothing that may be of a process that lives, or of somebody else.
TEST(DescriptorPort, WhatAKilledProcessHasLeftIsRemoved) {
  char made[] = "/tmp/accord-port-test-XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(made));
  const std::filesystem::path directory = made;
  const auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(directory),
                         std::filesystem::directory_iterator());
  };
  const auto join = [&] {
    DescriptorPort port;
    EXPECT_OK(port.open());
    EXPECT_OK(port.open_path(directory));
  };
  EXPECT_EQ(0, test::in_child([&] {
              auto* const port = new DescriptorPort;
              return port->open().ok() && port->open_path(directory).ok() ? 0 : 1;
            }));
  ASSERT_EQ(1, entries());
  const std::filesystem::path left = *std::filesystem::directory_iterator(directory);
  DescriptorPort living;
  ASSERT_OK(living.open());
  ASSERT_OK(living.open_path(directory));
  std::filesystem::create_directory(directory / "other");
  Descriptor(creat((directory / "accord-file").c_str(), 0600)).close();
  EXPECT_EQ(4, entries());
  join();
  EXPECT_EQ(4, entries()) << "too young to tell";
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    age(entry.path(), std::chrono::hours(1));
  join();
  EXPECT_EQ(3, entries());
  EXPECT_FALSE(std::filesystem::exists(left));
  // Killed before it had a socket.
  std::filesystem::create_directory(left);
  age(left, std::chrono::hours(1));
  join();
  EXPECT_EQ(3, entries());
  std::filesystem::remove_all(directory);
}

TEST(DescriptorPort, ADirectoryThatIsNotThereIsAnError) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  EXPECT_CODE(unsupported, port.open_path("/nowhere"));
  EXPECT_CODE(unsupported, port.open_path("/tmp/" + std::string(120, 'x')));
}

// A process that sends its life line and goes on for as long as the pipe `finish` is open.
int living_child(const PortAddress& to, int finish) {
  DescriptorPort port;
  int line = -1;
  bool sent = false;
  if (!port.open().ok() || !own_life_line(line).ok()) return 1;
  if (!port.send(to, kLabel, {&line, 1}, sent).ok() || !sent) return 2;
  char end = 0;
  return read(finish, &end, 1) == 0 ? 0 : 3;
}

// Also as a zombie it is dead, and also from another PID namespace.
TEST(LifeLine, TellsThatAProcessHasEnded) {
  for (const bool own_namespace : {false, true}) {
    DescriptorPort port;
    ASSERT_OK(port.open());
    int finish[2];
    ASSERT_EQ(0, pipe(finish));
    const pid_t child = fork();
    if (child == 0) {
      close(finish[1]);
      if (!own_namespace) _exit(living_child(port.address(), finish[0]));
      if (unshare(CLONE_NEWPID) != 0) _exit(77);
      _exit(test::in_child([&] { return living_child(port.address(), finish[0]); }));
    }
    close(finish[0]);
    std::vector<Descriptor> descriptors;
    siginfo_t ended{};
    while (!port.take(kLabel, descriptors) && ended.si_pid == 0)
      ASSERT_EQ(0, waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT));
    if (!descriptors.empty()) {
      const auto line = life_line_of(1234, std::move(descriptors[0]));
      EXPECT_FALSE(line->is_cut());
      // Communicators share one.
      EXPECT_EQ(line, life_line_of(1234, Descriptor(dup(finish[1]))));
      close(finish[1]);
      ASSERT_EQ(0, waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT));
      EXPECT_TRUE(line->is_cut());
    }
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    if (own_namespace && WEXITSTATUS(status) == 77) GTEST_SKIP() << "namespaces are not allowed";
    EXPECT_EQ(0, status);
    EXPECT_FALSE(descriptors.empty());
  }
}

// As a kernel without pidfds answers; for good.
bool refuse_pidfds() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Without pidfds the line is a pipe, which a child of the process must not hold.
TEST(LifeLine, TellsThatAProcessHasEndedThoughAChildOfItLivesOn) {
  DescriptorPort port;
  ASSERT_OK(port.open());
  int finish[2];
  ASSERT_EQ(0, pipe(finish));
  const int result = test::in_child([&] {
    if (!refuse_pidfds()) return 77;
    DescriptorPort own;
    int line = -1;
    bool sent = false;
    if (!own.open().ok() || !own_life_line(line).ok()) return 1;
    if (!own.send(port.address(), kLabel, {&line, 1}, sent).ok() || !sent) return 2;
    char end = 0;
    close(finish[1]);
    if (fork() == 0) _exit(read(finish[0], &end, 1) == 0 ? 0 : 1);
    return 0;
  });
  if (result == 77) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_EQ(0, result);
  std::vector<Descriptor> descriptors;
  ASSERT_TRUE(port.take(kLabel, descriptors));
  struct stat of {};
  ASSERT_EQ(0, fstat(descriptors[0].number(), &of));
  EXPECT_TRUE(S_ISFIFO(of.st_mode));
  // That child may have yet to run, and to close what it has inherited.
  const auto line = life_line_of(4321, std::move(descriptors[0]));
  for (int left = 10000; !line->is_cut() && left > 0; --left) usleep(1000);
  EXPECT_TRUE(line->is_cut());
  for (const int end : finish) close(end);
}

}  // namespace
}  // namespace accord::node
