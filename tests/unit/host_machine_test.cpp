// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The embedded host runtime as a machine whose copies take time: blocking ones last as long, others
// end no earlier, links take one copy after the other. Times are checked from below; how late a
// copy ends is a matter of who else uses the cores.
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/config.h"
#include "device/device_runtime.h"
#include "device/host/cost_model.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

using test::pattern;
using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::nanoseconds;

constexpr std::int64_t kSlowdown = 50;
constexpr std::size_t kBytes = 4 << 20;
// Moved by nobody: it would take seconds, so that a moment without a processor counts little.
constexpr std::size_t kLongBytes = std::size_t{8} << 30;

HostMachine machine() {
  HostMachine found;
  EXPECT_TRUE(find_machine("pcie4", kSlowdown, found));
  return found;
}

// Nanoseconds that one copy is to take.
double cost(Link link, std::size_t size_bytes) {
  const LinkCost of = machine()[link];
  return static_cast<double>(of.latency_ns) + static_cast<double>(size_bytes) / of.bytes_per_ns;
}

double since(Clock::time_point begin) {
  return duration<double, std::nano>(Clock::now() - begin).count();
}

double cpu_ns() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

class HostMachineTest : public testing::Test {
 protected:
  std::byte* allocate(int device, std::size_t size_bytes = kBytes) {
    void* memory = nullptr;
    EXPECT_OK(runtime_.allocate(device, MemoryKind::device, size_bytes, memory));
    return static_cast<std::byte*>(memory);
  }
  double copy(void* dst, const void* src, std::size_t size_bytes = kBytes) {
    const Copy one{dst, src, size_bytes};
    const auto begin = Clock::now();
    EXPECT_OK(runtime_.copy(0, {&one, 1}));
    return since(begin);
  }

  DeviceRuntime& runtime_ = host_runtime();
};

TEST(host_machine, says_how_well_adapters_read) {
  const auto reach = [](const char* name) {
    HostMachine found;
    EXPECT_TRUE(find_machine(name, kSlowdown, found));
    return CostModel(found).reach();
  };
  for (const char* name : {"pcie5", "nvlink", "c2c"})
    EXPECT_EQ(reach(name), AdapterReach::fast) << name;
  EXPECT_EQ(reach("pcie4"), AdapterReach::half);
  EXPECT_EQ(reach("mic"), AdapterReach::slow);
}

TEST_F(HostMachineTest, blocking_copies_last_as_long) {
  const auto data = pattern(kBytes, 1);
  auto back = data;
  std::byte* const here = allocate(0);
  std::byte* const beside = allocate(0);
  std::byte* const there = allocate(1);
  EXPECT_GE(copy(here, data.data()), cost(Link::to_device, kBytes));
  EXPECT_GE(copy(beside, here), cost(Link::on_device, kBytes));
  EXPECT_GE(copy(there, beside), cost(Link::peer, kBytes));
  std::memset(back.data(), 0, back.size());
  EXPECT_GE(copy(back.data(), there), cost(Link::to_host, kBytes));
  EXPECT_EQ(data, back);
  EXPECT_GE(copy(here, data.data(), 8), cost(Link::to_device, 8));
  for (std::byte* memory : {here, beside, there}) EXPECT_OK(runtime_.free(memory));
}

// Bytes are moved by the thread that asks, which takes longer on a busy machine: a few tries.
TEST_F(HostMachineTest, others_end_no_earlier_and_leave_the_core_alone) {
  const auto data = pattern(kBytes, 2);
  std::byte* const memory = allocate(0);
  const Copy one{memory, data.data(), kBytes};
  const double expected = cost(Link::to_device, kBytes);
  double spent = expected;
  for (int tries = 0; tries < 20 && spent >= 0.7 * expected; ++tries) {
    CopyTicket ticket;
    bool done = false;
    const auto begin = Clock::now();
    EXPECT_OK(runtime_.copy_begin(0, {&one, 1}, ticket));
    if (ticket.handle == nullptr) {  // it took as long as that to move the bytes
      EXPECT_GE(since(begin), expected);
      continue;
    }
    const double cpu = cpu_ns();
    while (!done) EXPECT_OK(runtime_.copy_done(ticket, done));
    EXPECT_GE(since(begin), expected);
    spent = cpu_ns() - cpu;
  }
  EXPECT_LT(spent, 0.7 * expected);
  std::vector<unsigned char> back(kBytes);
  copy(back.data(), memory);
  EXPECT_EQ(data, back);
  EXPECT_OK(runtime_.free(memory));
}

// Memory that this process has opened belongs to the device where it was allocated.
TEST_F(HostMachineTest, opened_memory_is_where_it_was) {
  std::byte* const owned = allocate(1);
  std::byte* const here = allocate(0);
  ExportedMemory exported;
  ASSERT_OK(runtime_.export_memory(owned, exported));
  void* opened = nullptr;
  ASSERT_OK(runtime_.open_memory(0, exported, opened));
  EXPECT_GE(copy(here, opened), cost(Link::peer, kBytes));
  EXPECT_OK(runtime_.close_memory(opened));
  EXPECT_OK(runtime_.free(owned));
  EXPECT_OK(runtime_.free(here));
  (void)::close(exported.file_descriptor);
}

// Devices that no other test uses.
TEST_F(HostMachineTest, a_link_takes_one_copy_after_the_other) {
  CostModel model(machine());
  Traffic one;
  one.add(20, Traffic::kHost, kLongBytes);
  const auto begin = Clock::now();
  const auto first = model.begin(one);
  const auto second = model.begin(one);
  const double moves = static_cast<double>(kLongBytes) / machine()[Link::to_device].bytes_per_ns;
  EXPECT_GE(duration<double>(second - first).count() * 1e9, 0.99 * moves);
  Traffic other_way;
  other_way.add(Traffic::kHost, 20, kLongBytes);
  EXPECT_LT(model.begin(other_way), second);
  Traffic both;
  both.add(21, Traffic::kHost, kLongBytes);
  both.add(21, Traffic::kHost, kLongBytes);
  EXPECT_GE(duration<double>(model.begin(both) - begin).count() * 1e9, 1.99 * moves);
  Traffic none;
  none.add(Traffic::kHost, Traffic::kHost, kLongBytes);
  EXPECT_LT(model.begin(none), first);
}

TEST_F(HostMachineTest, processes_share_links) {
  EXPECT_EQ(0, test::in_child([] {
              Traffic traffic;
              traffic.add(22, Traffic::kHost, kLongBytes);
              (void)CostModel(machine()).begin(traffic);
              return 0;
            }));
  Traffic small;
  small.add(22, Traffic::kHost, 8);
  const double wait = duration<double>(CostModel(machine()).begin(small) - Clock::now()).count();
  EXPECT_GE(wait * 1e9, 0.5 * cost(Link::to_device, kLongBytes));
}

// Bytes leave so that the last one has been read as it does, and are there once they are written.
TEST_F(HostMachineTest, adapters_reach_device_memory_at_their_own_rate) {
  const HostMachine of = machine();
  CostModel model(of);
  const auto bytes = static_cast<double>(kLongBytes);
  const auto begin = Clock::now();
  const auto leaves = model.begin_read(23, kLongBytes);
  EXPECT_GE(duration<double>(leaves - begin).count() * 1e9 + bytes / of.network_bytes_per_ns,
            cost(Link::adapter_reads, kLongBytes) - 1e3);
  const double rest = cost(Link::adapter_writes, kLongBytes) - bytes / of.network_bytes_per_ns;
  const auto written = model.end_write(23, kLongBytes, AdapterModel::From::host);
  EXPECT_GE(duration<double>(written - begin).count() * 1e9, rest - 1e3);
  // It writes faster than it reads, so what another one has read is there as it comes.
  const auto read_before = model.end_write(24, kLongBytes, AdapterModel::From::device);
  EXPECT_LT(duration<double>(read_before - begin).count() * 1e9, rest);
  CostModel::Moment free{};
  const auto first = model.end_write_at_peer(free, kLongBytes);
  EXPECT_GE(duration<double>(first - begin).count() * 1e9, rest - 1e3);
  const double writes = bytes / of[Link::adapter_writes].bytes_per_ns;
  EXPECT_GE(duration<double>(model.end_write_at_peer(free, kLongBytes) - first).count() * 1e9,
            0.99 * writes);
}

// The words that the setting takes are those of machines.def.
TEST_F(HostMachineTest, the_setting_takes_each_machine) {
  const auto is_taken = [](const char* name) {
    const std::string entry = std::string("ACCORD_HOST_MACHINE=") + name;
    const char* const environment[] = {entry.c_str(), nullptr};
    return read_settings(environment).status.ok();
  };
#define MACHINE(name, ...)                                                                   \
  EXPECT_TRUE(is_taken(#name)) << #name;                                                     \
  {                                                                                          \
    HostMachine found;                                                                       \
    ASSERT_TRUE(find_machine(#name, 1, found)) << #name;                                     \
    for (const LinkCost& link : found.links) {                                               \
      EXPECT_GT(link.latency_ns, 0) << #name;                                                \
      EXPECT_GT(link.bytes_per_ns, 0) << #name;                                              \
    }                                                                                        \
    EXPECT_GE(found.network_bytes_per_ns, found[Link::adapter_reads].bytes_per_ns) << #name; \
  }
#include "device/host/machines.def"
  EXPECT_FALSE(is_taken("abacus"));
  HostMachine found;
  EXPECT_FALSE(find_machine("none", 1, found));
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  setenv("ACCORD_RUNTIME", "host", 1);
  setenv("ACCORD_HOST_DEVICES", "2", 1);
  setenv("ACCORD_HOST_MACHINE", "pcie4", 1);
  setenv("ACCORD_HOST_SLOWDOWN", "50", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
