// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Ranks that are processes join a group over the embedded host runtime, as a communicator does:
// also from different PID and network namespaces, as containers have them. And how they part where
// one cannot open what another has made: no memory goes before all have closed it.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "coll/intra/joining.h"
#include "device/own_memory.h"
#include "joining_world.h"
#include "node/group.h"
#include "node_world.h"

namespace accord::test {
namespace {

constexpr int kNoNamespaces = 77;
constexpr int kLooks = 5000;

// What a rank knows of its peers: it writes its part to the parent and reads everybody's.
template <class Part>
bool exchange(int socket, const Part& mine, std::vector<Part>& all) {
  const auto bytes = static_cast<ssize_t>(all.size() * sizeof(Part));
  return send(socket, &mine, sizeof mine, 0) == sizeof mine &&
         recv(socket, all.data(), static_cast<std::size_t>(bytes), MSG_WAITALL) == bytes;
}

// The last rank fails, and the first because of it: all tell the last one's error, then and later.
bool all_name_the_first_error(node::Group& group, int socket) {
  const int last = group.size() - 1;
  std::vector<char> all(static_cast<std::size_t>(group.size()));
  const auto fail = [&](const Status& status) {
    group.explain(status);
    group.give_up();
  };
  if (group.rank() == last) fail({StatusCode::device_error, "the device is on fire"});
  if (!exchange(socket, 'f', all)) return false;
  if (group.rank() == 0 && last != 0) fail(group.check_peers());
  if (!exchange(socket, 'g', all)) return false;
  const std::string expected =
      "rank " + std::to_string(last) + " has given up this communicator: the device is on fire";
  // Also once the last one has ended, at which check_peers looks now and then.
  if (group.rank() != last) ::usleep(100000);
  for (int i = 0; i < kLooks; ++i) {
    const std::string told = group.check_peers().message();
    if (told.ends_with(expected)) continue;
    std::fprintf(stderr, "%s\n", told.c_str());
    return false;
  }
  return true;
}

// One rank: joins, leaves a number in its region, and finds the others' in theirs. 0, or which step
// failed.
int join_and_read(int rank, int size, int socket) {
  device::DeviceRuntime& runtime = device::host_runtime();
  const std::shared_ptr<node::Group> group(new node::Group, node::Group::retire);
  std::vector<node::Record> records(static_cast<std::size_t>(size));
  node::Record mine;
  if (!group->prepare(rank, size, runtime, 0, {.region_bytes = kRegionBytes}, mine).ok()) return 1;
  if (!exchange(socket, mine, records) || !group->accept(records).ok()) return 2;
  bool sent = false;
  while (!sent) {
    if (!group->send(sent).ok()) return 3;
  }
  std::vector<char> all(records.size());
  if (!exchange(socket, 's', all)) return 4;
  const Status opened = group->open();
  if (!opened.ok()) std::fprintf(stderr, "%s\n", opened.message().c_str());
  if (!opened.ok()) return 5;
  const device::Copy put{group->slot(rank, 0), &rank, sizeof rank};
  if (!runtime.copy(0, {&put, 1}).ok() || !exchange(socket, 'w', all)) return 6;
  for (int peer = 0; peer < size; ++peer) {
    int seen = -1;
    const device::Copy get{&seen, group->slot(peer, 0), sizeof seen};
    if (!runtime.copy(0, {&get, 1}).ok() || seen != peer) return 7;
  }
  if (!group->check_peers().ok()) return 8;
  if (!exchange(socket, 'r', all)) return 9;
  return all_name_the_first_error(*group, socket) ? 0 : 10;
}

// Carries the exchanges of join_and_read.
void serve(const std::vector<int>& sockets) {
  for (const std::size_t part_bytes : {sizeof(node::Record), sizeof(char), sizeof(char),
                                       sizeof(char), sizeof(char), sizeof(char)}) {
    std::vector<char> all(part_bytes * sockets.size());
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
      if (recv(sockets[rank], &all[rank * part_bytes], part_bytes, MSG_WAITALL) !=
          static_cast<ssize_t>(part_bytes))
        return;  // that rank has given up
    }
    for (const int socket : sockets) (void)send(socket, all.data(), all.size(), MSG_NOSIGNAL);
  }
}

// What the ranks answer, each in new namespaces of these kinds.
std::vector<int> join_in_namespaces(int size, int kinds) {
  std::vector<int> sockets;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    children.push_back(fork());
    if (children.back() == 0) {
      close(ends[0]);
      for (const int other : sockets) close(other);
      if (kinds != 0 && unshare(kinds) != 0) _exit(kNoNamespaces);
      // A new PID namespace begins with the next child.
      _exit(in_child([&] { return join_and_read(rank, size, ends[1]); }));
    }
    close(ends[1]);
    sockets.push_back(ends[0]);
  }
  serve(sockets);
  for (const int socket : sockets) close(socket);
  std::vector<int> answers;
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    answers.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return answers;
}

class NodeGroup : public testing::TestWithParam<int> {};

TEST_P(NodeGroup, IsJoinedByProcessesWhateverTheirNamespaces) {
  constexpr int kRanks = 3;
  const std::vector<int> answers = join_in_namespaces(kRanks, GetParam());
  if (answers[0] == kNoNamespaces) GTEST_SKIP() << "namespaces are not allowed here";
  EXPECT_EQ(std::vector<int>(kRanks, 0), answers);
}

INSTANTIATE_TEST_SUITE_P(All, NodeGroup,
                         testing::Values(0, CLONE_NEWPID, CLONE_NEWNET,
                                         CLONE_NEWUSER | CLONE_NEWPID,
                                         CLONE_NEWPID | CLONE_NEWNET));

TEST(Joining, AllJoin) {
  JoiningWorld world({});
  world.join(1);
  for (core::NodeGroup& group : world.groups) {
    EXPECT_NE(nullptr, group.group);
    EXPECT_FALSE(group.declined);
  }
  EXPECT_EQ(6, world.open_count);
  for (core::NodeGroup& group : world.groups) group.group.reset();
  node::Group::bury();
  for (const Watched& runtime : world.runtimes) {
    EXPECT_EQ(1, runtime.freed);
    EXPECT_EQ(0, runtime.freed_while_open);
  }
}

// How much of the memory that groups of this process share with others is there.
std::size_t resident_mailbox_bytes() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t bytes = 0;
  bool is_of_mailboxes = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' '))
      is_of_mailboxes = line.find("accord-mailboxes") != line.npos;
    std::size_t kilobytes = 0;
    if (is_of_mailboxes && std::sscanf(line.c_str(), "Rss: %zu", &kilobytes) == 1)
      bytes += kilobytes * 1024;
  }
  return bytes;
}

// What there is for each pair of ranks costs memory where the pair uses it. In a child, since the
// device memory of a process depends on the largest node that it has seen.
bool takes_memory_as_there_are_ranks() {
  const auto taken_bytes = [](int size) {
    const std::size_t before = resident_mailbox_bytes();
    node::Group group;
    node::Record record;
    EXPECT_OK(group.prepare(0, size, device::host_runtime(), 0, {.region_bytes = 8 << 20}, record));
    return resident_mailbox_bytes() - before;
  };
  const std::size_t of_few = taken_bytes(32);
  return of_few > 32 * sizeof(node::Mailbox) && taken_bytes(128) <= 5 * of_few;
}

TEST(NodeGroup, TakesMemoryAsThereAreRanks) {
  EXPECT_EQ(0, in_child([] { return takes_memory_as_there_are_ranks() ? 0 : 1; }));
}

// A rank tells its node what it has made, and nobody else.
TEST(Joining, RanksOfSeveralNodesTellTheirOwnNodeAlone) {
  JoiningWorld world({}, {5, 9, 5});
  world.join(3);
  const int sizes[] = {2, 1, 2};
  const std::size_t told_bytes[] = {sizeof(node::Record), 0, sizeof(node::Record)};
  for (std::size_t rank = 0; rank < JoiningWorld::kRanks; ++rank) {
    core::NodeGroup& group = world.groups[rank];
    ASSERT_NE(nullptr, group.group);
    EXPECT_EQ(sizes[rank], group.group->size());
    EXPECT_EQ(2, group.placement.nodes());
    EXPECT_EQ(told_bytes[rank], world.board.bytes_from(static_cast<int>(rank)));
  }
  EXPECT_EQ(2, world.open_count);
  for (core::NodeGroup& group : world.groups) group.group.reset();
  node::Group::bury();
}

TEST(Joining, NoNodeJoinsWhereARankOfAnotherCannot) {
  JoiningWorld world({2}, {5, 9, 5});
  world.join(4);
  for (core::NodeGroup& group : world.groups) {
    EXPECT_EQ(nullptr, group.group);
    EXPECT_TRUE(group.declined);
  }
  node::Group::bury();
  EXPECT_EQ(0, world.open_count);
  for (const Watched& runtime : world.runtimes) EXPECT_EQ(0, runtime.freed_while_open);
}

// How often this process has each of its memory files of that name open.
std::map<ino_t, int> open_memory_files(const std::string& name) {
  std::map<ino_t, int> times;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    struct stat of {};
    if (std::filesystem::read_symlink(entry, gone) == "/memfd:" + name + " (deleted)" &&
        ::stat(entry.path().c_str(), &of) == 0)
      ++times[of.st_ino];
  }
  return times;
}

int mappings_of_mailboxes() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("accord-mailboxes") != std::string::npos ? 1 : 0;
  return count;
}

// Else a program that makes communicators for long runs out of descriptors, or of address space.
TEST(Joining, KeepsNoDescriptorOnceAllHaveJoinedAndNoMappingInTheEnd) {
  const int before = mappings_of_mailboxes();
  {
    JoiningWorld world({});
    world.join(1);
    EXPECT_TRUE(open_memory_files("accord-mailboxes").empty());
    const auto memory = open_memory_files("accord");
    EXPECT_GE(memory.size(), std::size_t{JoiningWorld::kRanks});
    for (const auto& [file, times] : memory) EXPECT_EQ(1, times);
    EXPECT_LT(before, mappings_of_mailboxes());
  }
  node::Group::bury();
  EXPECT_EQ(before, mappings_of_mailboxes());
}

TEST(Joining, WhereOneCannotOpenNothingIsFreedBeforeAllHaveClosed) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    JoiningWorld world({seed % JoiningWorld::kRanks});
    world.join(seed);
    for (const core::NodeGroup& group : world.groups) {
      EXPECT_EQ(nullptr, group.group);
      EXPECT_TRUE(group.declined);
      EXPECT_FALSE(group.why_declined.empty());
    }
    EXPECT_EQ(0, world.open_count);
    for (const Watched& runtime : world.runtimes) {
      EXPECT_EQ(1, runtime.freed);
      EXPECT_EQ(0, runtime.freed_while_open) << "seed " << seed;
    }
  }
}

// Ranks that have a group join one with more memory, and keep theirs where they cannot.
TEST(Joining, RanksThatWantMoreMemoryJoinAnew) {
  JoiningWorld world({});
  world.join(3);
  const auto before = world.groups[0].group;
  EXPECT_EQ(kRegionBytes, world.groups[0].asked_bytes);
  world.region_bytes = 4 * kRegionBytes;
  world.join(4);
  EXPECT_EQ(4 * kRegionBytes, world.groups[0].asked_bytes);
  EXPECT_NE(before, world.groups[0].group);
  EXPECT_EQ(4 * before->slot_bytes(), world.groups[0].group->slot_bytes());
  const auto kept = world.groups[0].group;
  world.region_bytes = std::size_t{4} << 20;  // in another segment
  world.runtimes[1].refuses = true;
  world.join(5);
  for (const core::NodeGroup& group : world.groups) EXPECT_FALSE(group.declined);
  EXPECT_EQ(kept, world.groups[0].group);
}

// All have as much as the one with least room.
TEST(Joining, RegionsAreAsLongAsThereIsRoom) {
  JoiningWorld world({});
  world.region_bytes = node::Group::kRegionSizes[2];
  std::vector<node::DeviceLease> leases(3);
  for (node::DeviceLease& lease : leases)
    EXPECT_OK(node::lease_device_memory(world.runtimes[1], 0, std::size_t{15} << 20,
                                        node::LeaseOf::group, lease));
  world.join(6);
  for (const core::NodeGroup& group : world.groups)
    EXPECT_EQ(node::Group::kRegionSizes[1] / node::Group::kSlots, group.group->slot_bytes());
}

// Its memory may go only where all rest after as many calls.
TEST(GroupRest, TakesAllRanksAfterTheSameCalls) {
  NodeWorld world(3, kRegionBytes, 1);
  node::Group& a = world.group(0);
  node::Group& b = world.group(1);
  node::Group& c = world.group(2);
  EXPECT_FALSE(a.someone_rests(5));
  EXPECT_TRUE(a.rest(5));
  EXPECT_TRUE(b.rest(5));
  EXPECT_TRUE(c.someone_rests(5));
  EXPECT_FALSE(c.all_rest(5));
  EXPECT_TRUE(b.wake(5));
  EXPECT_TRUE(c.rest(5));
  EXPECT_FALSE(a.all_rest(5));
  // What the others have said is void: they have a call to make.
  EXPECT_TRUE(b.rest(6));
  EXPECT_FALSE(a.rest(5));
  EXPECT_TRUE(a.wake(5));
  EXPECT_TRUE(c.wake(5));
  EXPECT_TRUE(a.rest(6));
  EXPECT_TRUE(c.rest(6));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(world.group(rank).all_rest(6));
    EXPECT_FALSE(world.group(rank).wake(6));
  }
}

TEST(DevicePool, LeasesShareSegmentsThatAreFreedWithTheLastOne) {
  int open_count = 0;
  Watched runtime(open_count);
  const std::size_t before = device::own_memory.bytes;
  {
    std::vector<node::DeviceLease> leases(8);
    for (node::DeviceLease& lease : leases)
      EXPECT_OK(node::lease_device_memory(runtime, 0, 1000, node::LeaseOf::group, lease));
    EXPECT_EQ(before + (std::size_t{2} << 20), device::own_memory.bytes);
    EXPECT_NE(leases[0].data(), leases[1].data());
    std::byte* const second = leases[1].data();
    leases[1].reset();
    EXPECT_OK(node::lease_device_memory(runtime, 0, 4096, node::LeaseOf::messages, leases[1]));
    EXPECT_EQ(second, leases[1].data());
    EXPECT_EQ(0, runtime.freed);
  }
  EXPECT_EQ(1, runtime.freed);
  EXPECT_EQ(before, device::own_memory.bytes);
}

TEST(DevicePool, GroupsGetAPartOfItButForShortAndForLongLeases) {
  int open_count = 0;
  Watched runtime(open_count);
  constexpr std::size_t kMi = std::size_t{1} << 20;
  std::vector<node::DeviceLease> leases(30);
  for (std::size_t i = 0; i < 28; ++i)
    EXPECT_OK(node::lease_device_memory(runtime, 0, 2 * kMi, node::LeaseOf::group, leases[i]));
  const auto lease = [&](std::size_t size_bytes, node::LeaseOf purpose) {
    return node::lease_device_memory(runtime, 0, size_bytes, purpose, leases[28]).code();
  };
  EXPECT_EQ(StatusCode::unsupported, lease(2 * kMi, node::LeaseOf::group));
  EXPECT_EQ(StatusCode::ok, lease(kMi / 4, node::LeaseOf::group));
  EXPECT_EQ(StatusCode::ok, lease(128 * kMi, node::LeaseOf::group));
  EXPECT_EQ(StatusCode::ok, lease(2 * kMi, node::LeaseOf::messages));
  EXPECT_EQ(StatusCode::unsupported, lease(512 * kMi, node::LeaseOf::messages));
}

// Of a node of 128 ranks and 8 devices, each.
TEST(DevicePool, HasRoomForAThousandCommunicatorsIfSixteenRanksShareADevice) {
  int open_count = 0;
  Watched runtime(open_count);
  node::expect_device_pools(128, 8);
  std::vector<node::DeviceLease> leases(1000);
  for (node::DeviceLease& lease : leases)
    ASSERT_OK(node::lease_device_memory(runtime, 0, node::Group::kRegionSizes[0],
                                        node::LeaseOf::group, lease));
  node::DeviceLease more;
  EXPECT_EQ(StatusCode::unsupported, node::lease_device_memory(runtime, 0, std::size_t{64} << 20,
                                                               node::LeaseOf::messages, more)
                                         .code());
}

// What its kernel may yet read or write is kept until that has run.
TEST(Joining, NobodyWaitsForEverForADeviceThatIsBusy) {
  const ShortPatience patience;
  JoiningWorld world({});
  constexpr std::size_t kBusy = 1;
  world.runtimes[kBusy].is_busy = true;
  world.join(1);
  for (const core::NodeGroup& group : world.groups) {
    EXPECT_EQ(nullptr, group.group);
    EXPECT_TRUE(group.declined);
  }
  EXPECT_NE(std::string::npos, world.groups[kBusy].why_declined.find("kernel"));
  EXPECT_EQ(2, world.open_count);
  EXPECT_EQ(0, world.runtimes[kBusy].freed);
  node::Group::bury();
  EXPECT_EQ(0, world.runtimes[kBusy].freed);
  world.runtimes[kBusy].is_busy = false;
  node::Group::bury();
  EXPECT_EQ(0, world.open_count);
  for (const Watched& runtime : world.runtimes) {
    EXPECT_EQ(1, runtime.freed);
    EXPECT_EQ(0, runtime.closed_while_busy);
  }
}

}  // namespace
}  // namespace accord::test
