// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The embedded host runtime: its device memory cannot be touched, and everything else works as on a
// GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <set>

#include "base/config.h"
#include "device/device_runtime.h"
#include "device/host/arena.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

using test::faults;
using test::pattern;
using test::Touch;

constexpr std::size_t kPageBytes = 4096;

class HostRuntime : public testing::Test {
 protected:
  ~HostRuntime() override {
    for (void* pointer : allocated_) static_cast<void>(runtime_.free(pointer));
  }

  std::byte* allocate(std::size_t size_bytes, MemoryKind kind = MemoryKind::device,
                      int device = 0) {
    void* pointer = nullptr;
    EXPECT_OK(runtime_.allocate(device, kind, size_bytes, pointer));
    allocated_.insert(pointer);
    return static_cast<std::byte*>(pointer);
  }
  Status release(void* pointer) {
    allocated_.erase(pointer);
    return runtime_.free(pointer);
  }
  PointerInfo info(const void* pointer) {
    PointerInfo result;
    return runtime_.classify(pointer, result) ? result : PointerInfo{};
  }
  Status copy(void* dst, const void* src, std::size_t size_bytes) {
    const Copy one{dst, src, size_bytes};
    return runtime_.copy(0, {&one, 1});
  }
  std::vector<unsigned char> contents(const void* pointer, std::size_t size_bytes) {
    std::vector<unsigned char> bytes(size_bytes);
    EXPECT_OK(copy(bytes.data(), pointer, size_bytes));
    return bytes;
  }

  DeviceRuntime& runtime_ = host_runtime();
  std::set<void*> allocated_;
};

// First, while nothing is allocated.
TEST_F(HostRuntime, is_inactive_until_something_is_allocated) {
  EXPECT_FALSE(runtime_.active());
  int local = 0;
  EXPECT_EQ(MemoryKind::host, info(&local).kind);
  allocate(1);
  EXPECT_TRUE(runtime_.active());
  EXPECT_TRUE(runtime_.present());
}

TEST_F(HostRuntime, cpu_faults_on_device_memory) {
  std::byte* memory = allocate(3 * kPageBytes + 5);
  for (std::size_t offset : {std::size_t{0}, std::size_t{1}, kPageBytes, 3 * kPageBytes + 4}) {
    EXPECT_TRUE(faults(memory + offset, Touch::read)) << offset;
    EXPECT_TRUE(faults(memory + offset, Touch::write)) << offset;
  }
}

TEST_F(HostRuntime, fault_on_device_memory_is_explained) {
  std::byte* memory = allocate(kPageBytes);
  const std::string touched = fmt::format("the CPU touched 0x{:016x}, device memory of the host",
                                          reinterpret_cast<std::uintptr_t>(memory) + 7);
  EXPECT_EXIT(memory[7] = std::byte{1}, testing::KilledBySignal(SIGSEGV), touched);
  EXPECT_EXIT(*reinterpret_cast<volatile int*>(8) = 1, testing::KilledBySignal(SIGSEGV), "^$");
}

TEST_F(HostRuntime, system_calls_fail_on_device_memory) {
  std::byte* memory = allocate(kPageBytes);
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  EXPECT_EQ(-1, write(ends[1], memory, 8));
  EXPECT_EQ(EFAULT, errno);
  ASSERT_EQ(8, write(ends[1], "12345678", 8));
  EXPECT_EQ(-1, read(ends[0], memory, 8));
  EXPECT_EQ(EFAULT, errno);
  close(ends[0]);
  close(ends[1]);

  char here[8];
  const iovec local{here, sizeof here};
  const iovec remote{memory, sizeof here};
  EXPECT_EQ(-1, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
  EXPECT_EQ(EFAULT, errno);
  EXPECT_EQ(-1, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
  EXPECT_EQ(EFAULT, errno);

  int sockets[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
  iovec part{memory, 8};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  EXPECT_EQ(-1, sendmsg(sockets[0], &message, 0));
  EXPECT_EQ(EFAULT, errno);
  close(sockets[0]);
  close(sockets[1]);
}

TEST_F(HostRuntime, classify_at_the_edges) {
  std::byte* memory = allocate(100);
  const PointerInfo first = info(memory);
  EXPECT_EQ(MemoryKind::device, first.kind);
  EXPECT_EQ(&runtime_, first.runtime);
  EXPECT_EQ(0, first.device);
  EXPECT_EQ(memory, first.base);
  EXPECT_EQ(100U, first.size_bytes);
  EXPECT_EQ(first.buffer_id, info(memory + 99).buffer_id);
  EXPECT_EQ(memory, info(memory + 99).base);
  EXPECT_EQ(MemoryKind::host, info(memory + 100).kind);
  EXPECT_EQ(MemoryKind::host, info(memory - 1).kind);
  EXPECT_EQ(MemoryKind::host, info(nullptr).kind);
}

TEST_F(HostRuntime, neighbours_do_not_touch) {
  std::byte* first = allocate(kPageBytes);
  std::byte* second = allocate(kPageBytes);
  EXPECT_EQ(MemoryKind::host, info(first + kPageBytes).kind);
  EXPECT_NE(info(first).buffer_id, info(second).buffer_id);
}

TEST_F(HostRuntime, managed_and_pinned_memory_can_be_touched) {
  for (MemoryKind kind : {MemoryKind::managed, MemoryKind::pinned}) {
    std::byte* memory = allocate(2 * kPageBytes + 1, kind);
    EXPECT_FALSE(faults(memory, Touch::read));
    EXPECT_FALSE(faults(memory + 2 * kPageBytes, Touch::write));
    EXPECT_EQ(kind, info(memory + 2 * kPageBytes).kind);
    EXPECT_EQ(kind == MemoryKind::managed, runtime_.must_stage(memory));
    const auto data = pattern(2 * kPageBytes + 1, 3);
    EXPECT_OK(copy(memory, data.data(), data.size()));
    EXPECT_EQ(0, std::memcmp(memory, data.data(), data.size()));
    EXPECT_OK(release(memory));
    EXPECT_TRUE(faults(memory, Touch::read)) << "freed";
    EXPECT_EQ(MemoryKind::host, info(memory).kind);
  }
}

TEST_F(HostRuntime, freed_addresses_come_back_with_a_new_id) {
  std::byte* first = allocate(1000);
  const std::uint64_t id = info(first).buffer_id;
  const auto data = pattern(1000, 1);
  EXPECT_OK(copy(first, data.data(), data.size()));
  EXPECT_OK(release(first));
  EXPECT_EQ(MemoryKind::host, info(first).kind);
  std::byte* second = allocate(1000);
  EXPECT_EQ(first, second) << "the point of this test; addresses are given out lowest first";
  EXPECT_NE(id, info(second).buffer_id);
  EXPECT_EQ(std::vector<unsigned char>(1000, 0), contents(second, 1000));
}

TEST_F(HostRuntime, free_wants_the_start_of_an_allocation) {
  std::byte* memory = allocate(100);
  int local = 0;
  EXPECT_CODE(invalid_argument, runtime_.free(memory + 1));
  EXPECT_CODE(invalid_argument, runtime_.free(&local));
  EXPECT_CODE(invalid_argument, runtime_.close_memory(memory));
  EXPECT_OK(runtime_.free(nullptr));
  EXPECT_OK(release(memory));
  EXPECT_CODE(invalid_argument, runtime_.free(memory));
}

TEST_F(HostRuntime, allocation_errors) {
  void* pointer = this;
  EXPECT_OK(runtime_.allocate(0, MemoryKind::device, 0, pointer));
  EXPECT_EQ(nullptr, pointer);
  EXPECT_CODE(invalid_argument, runtime_.allocate(-1, MemoryKind::device, 8, pointer));
  EXPECT_CODE(invalid_argument, runtime_.allocate(3, MemoryKind::device, 8, pointer));
  EXPECT_CODE(invalid_argument, runtime_.allocate(0, MemoryKind::host, 8, pointer));
  EXPECT_CODE(no_memory,
              runtime_.allocate(0, MemoryKind::device, host_memory_bytes() + 1, pointer));
  EXPECT_CODE(no_memory, runtime_.allocate(0, MemoryKind::device, SIZE_MAX, pointer));
  EXPECT_EQ(nullptr, pointer);
}

TEST_F(HostRuntime, shows_as_many_devices_as_set) {
  ASSERT_EQ(3, config().host_devices);  // set by main
  EXPECT_EQ(3, runtime_.device_count());
  std::set<std::string> uuids;
  for (int device = 0; device < 3; ++device) {
    DeviceDescription description;
    EXPECT_OK(runtime_.describe(device, description));
    EXPECT_FALSE(description.name.empty());
    EXPECT_GT(description.memory_bytes, 0U);
    uuids.insert(description.uuid);
    EXPECT_EQ(device, info(allocate(1, MemoryKind::device, device)).device);
  }
  EXPECT_EQ(3U, uuids.size());
  DeviceDescription description;
  EXPECT_CODE(invalid_argument, runtime_.describe(3, description));
}

TEST_F(HostRuntime, copies_both_ways_and_within) {
  const auto data = pattern(3 * kPageBytes + 17, 5);
  std::byte* first = allocate(data.size());
  std::byte* second = allocate(data.size());
  EXPECT_OK(copy(first, data.data(), data.size()));
  EXPECT_OK(copy(second, first, data.size()));
  EXPECT_EQ(data, contents(second, data.size()));
  // interior pointers on both sides
  EXPECT_OK(copy(second + 5, first + 4000, 200));
  EXPECT_EQ(std::vector<unsigned char>(data.begin() + 4000, data.begin() + 4200),
            contents(second + 5, 200));
}

TEST_F(HostRuntime, a_batch_arrives_whole) {
  const auto data = pattern(1000, 6);
  std::byte* memory = allocate(1000);
  std::vector<Copy> batch;
  for (std::size_t i = 0; i < 10; ++i) {
    batch.push_back({memory + (9 - i) * 100, data.data() + i * 100, 100});
  }
  batch.push_back({memory, data.data(), 0});     // nothing
  batch.push_back({memory, data.data(), 8, 0});  // no rows
  EXPECT_OK(runtime_.copy(0, batch));
  EXPECT_OK(runtime_.copy(0, {}));
  const auto seen = contents(memory, 1000);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(0, std::memcmp(seen.data() + (9 - i) * 100, data.data() + i * 100, 100)) << i;
  }
}

// Random rectangles against the same loop on plain memory; bytes outside the rectangle must stay.
TEST_F(HostRuntime, rectangles_match_a_reference) {
  std::mt19937 random(12345);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (int round = 0; round < 200; ++round) {
    const std::size_t row_bytes = 1 + below(40);
    const std::size_t rows = 1 + below(20);
    const std::size_t dst_pitch = row_bytes + below(50);
    const std::size_t src_pitch = row_bytes + below(50);
    const std::size_t dst_offset = below(30);
    const std::size_t src_offset = below(30);
    const std::size_t dst_size = dst_offset + (rows - 1) * dst_pitch + row_bytes + below(10);
    const std::size_t src_size = src_offset + (rows - 1) * src_pitch + row_bytes + below(10);
    const auto source = pattern(src_size, static_cast<unsigned>(round));
    auto expected = pattern(dst_size, 999);
    std::byte* dst = allocate(dst_size);
    EXPECT_OK(copy(dst, expected.data(), dst_size));
    const void* src = source.data();
    if (round % 2 == 0) {
      std::byte* on_device = allocate(src_size);
      EXPECT_OK(copy(on_device, source.data(), src_size));
      src = on_device;
    }
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(expected.data() + dst_offset + row * dst_pitch,
                  source.data() + src_offset + row * src_pitch, row_bytes);
    }
    const Copy rectangle{dst + dst_offset, static_cast<const std::byte*>(src) + src_offset,
                         row_bytes,        rows,
                         dst_pitch,        src_pitch};
    EXPECT_OK(runtime_.copy(0, {&rectangle, 1}));
    ASSERT_EQ(expected, contents(dst, dst_size)) << "round " << round;
  }
}

TEST_F(HostRuntime, negative_pitch_walks_backwards) {
  const auto data = pattern(40, 7);
  std::byte* memory = allocate(40);
  const auto back = static_cast<std::size_t>(-10);
  const Copy upside_down{memory + 30, data.data(), 10, 4, back, 10};
  EXPECT_OK(runtime_.copy(0, {&upside_down, 1}));
  const auto seen = contents(memory, 40);
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(0, std::memcmp(seen.data() + (3 - row) * 10, data.data() + row * 10, 10));
  }
  const Copy too_far{memory + 20, data.data(), 10, 4, back, 10};
  EXPECT_CODE(invalid_argument, runtime_.copy(0, {&too_far, 1}));
}

TEST_F(HostRuntime, copies_that_leave_an_allocation_are_errors) {
  std::byte* memory = allocate(100);
  std::vector<unsigned char> host(400);
  EXPECT_OK(copy(memory + 60, host.data(), 40));
  EXPECT_CODE(invalid_argument, copy(memory + 60, host.data(), 41));
  EXPECT_CODE(invalid_argument, copy(host.data(), memory + 60, 41));
  EXPECT_CODE(invalid_argument, copy(memory + 100, host.data(), 1));
  EXPECT_CODE(invalid_argument, copy(memory - 1, host.data(), 2));
  EXPECT_CODE(invalid_argument, copy(host.data(), memory, SIZE_MAX));
  const Copy fits{memory, host.data(), 10, 4, 30, 10};
  EXPECT_OK(runtime_.copy(0, {&fits, 1}));
  const Copy last_row{memory, host.data(), 10, 5, 23, 10};
  EXPECT_CODE(invalid_argument, runtime_.copy(0, {&last_row, 1}));
  const Copy overflow{memory, host.data(), 10, 3, SIZE_MAX / 2, 10};
  EXPECT_CODE(invalid_argument, runtime_.copy(0, {&overflow, 1}));
  EXPECT_OK(release(memory));
  EXPECT_CODE(invalid_argument, copy(host.data(), memory, 1));
  EXPECT_CODE(invalid_argument, runtime_.copy(7, std::vector<Copy>{{host.data(), host.data(), 1}}));
}

// With the test setting a batch stays away until it has been asked for often enough. The setting is
// read at the first copy_begin of a process, so this comes before the other test of tickets.
TEST_F(HostRuntime, tickets_can_be_made_late) {
  EXPECT_EQ(0, test::in_child([this] {
              setenv("ACCORD_TEST_COPY_POLLS", "3", 1);
              const auto data = pattern(500, 9);
              std::byte* memory = allocate(500);
              const Copy one{memory, data.data(), 500};
              CopyTicket ticket;
              bool done = true;
              if (!runtime_.copy_begin(0, {&one, 1}, ticket).ok() || ticket.handle == nullptr)
                return 1;
              for (int polls = 1; polls <= 2; ++polls) {
                if (!runtime_.copy_done(ticket, done).ok() || done) return 2;
                if (contents(memory, 500) == data) return 3;
              }
              if (!runtime_.copy_done(ticket, done).ok() || !done) return 4;
              return contents(memory, 500) == data && ticket.handle == nullptr ? 0 : 5;
            }));
}

TEST_F(HostRuntime, tickets) {
  const auto data = pattern(500, 8);
  std::byte* memory = allocate(500);
  const Copy one{memory, data.data(), 500};
  CopyTicket ticket;
  EXPECT_OK(runtime_.copy_begin(0, {&one, 1}, ticket));
  bool done = false;
  for (int polls = 0; !done && polls < 100; ++polls) EXPECT_OK(runtime_.copy_done(ticket, done));
  EXPECT_TRUE(done);
  EXPECT_EQ(data, contents(memory, 500));
  const Copy bad{memory, data.data(), 501};
  EXPECT_CODE(invalid_argument, runtime_.copy_begin(0, {&bad, 1}, ticket));
  EXPECT_EQ(nullptr, ticket.handle);
}

// What it finds there is the memory itself, which its own address does not give.
TEST_F(HostRuntime, libraries_find_device_memory) {
  std::byte* memory = allocate(500);
  const auto data = pattern(400, 9);
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(0, stream));
  EXPECT_OK(stream->enqueue([&](void* vendors) {
    EXPECT_EQ(nullptr, vendors);
    std::memcpy(runtime_.address_for_library(memory + 100), data.data(), data.size());
    return Status();
  }));
  bool done = false;
  for (int polls = 0; !done && polls < 100; ++polls) EXPECT_OK(stream->poll(done));
  EXPECT_TRUE(done);
  EXPECT_EQ(data, contents(memory + 100, data.size()));
  int plain = 0;
  EXPECT_EQ(&plain, runtime_.address_for_library(&plain));
  const Status refused{StatusCode::device_error, "refused"};
  EXPECT_CODE(device_error, stream->enqueue([&](void*) { return refused; }));
  int calls = 0;
  std::unique_ptr<Recording> recording;
  EXPECT_OK(stream->record([&](void*) { return ++calls, Status(); }, recording));
  EXPECT_EQ(0, calls);
  for (int round = 1; round <= 2; ++round) {
    EXPECT_OK(stream->enqueue([&](void* vendors) { return recording->put(vendors); }));
    EXPECT_EQ(round, calls);
  }
  EXPECT_FALSE(runtime_.make_stream(1000, stream).ok());
}

TEST_F(HostRuntime, host_memory_is_plain) {
  void* pointer = nullptr;
  ASSERT_OK(runtime_.host_allocate(10000, pointer));
  EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(pointer) % kPageBytes);
  EXPECT_FALSE(faults(static_cast<std::byte*>(pointer) + 9999, Touch::write));
  EXPECT_EQ(MemoryKind::host, info(pointer).kind);
  runtime_.host_free(pointer, 10000);
}

// As drivers do, who know where page-locked memory ends.
TEST_F(HostRuntime, refuses_copies_from_one_page_locked_memory_to_the_next) {
  constexpr std::size_t kSize = 64 << 10;
  std::array<void*, 2> pages{};
  for (void*& memory : pages) ASSERT_OK(runtime_.host_allocate(kSize, memory));
  std::ranges::sort(pages);
  const auto pitch =
      static_cast<std::size_t>(static_cast<char*>(pages[1]) - static_cast<char*>(pages[0]));
  std::vector<char> host(200);
  const Copy within{host.data(), pages[0], 100, 2, 100, 100};
  EXPECT_OK(runtime_.copy(0, {&within, 1}));
  const Copy across{host.data(), pages[0], 100, 2, 100, pitch};
  EXPECT_CODE(invalid_argument, runtime_.copy(0, {&across, 1}));
  const Copy beyond{pages[0], host.data(), 100, 2, kSize - 99, 100};
  EXPECT_CODE(invalid_argument, runtime_.copy(0, {&beyond, 1}));
  for (void* memory : pages) runtime_.host_free(memory, kSize);
}

TEST_F(HostRuntime, works_without_descriptors) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need descriptors themselves";
#endif
  EXPECT_EQ(0, test::in_child([this] {
              const rlimit none{0, 0};
              setrlimit(RLIMIT_NOFILE, &none);
              const auto data = pattern(100, 10);
              std::byte* memory = allocate(100);
              if (memory == nullptr || !copy(memory, data.data(), 100).ok()) return 1;
              if (contents(memory, 100) != data || !faults(memory, Touch::read)) return 2;
              ExportedMemory exported;
              return runtime_.export_memory(memory, exported).code() == StatusCode::unsupported ? 0
                                                                                                : 3;
            }));
}

TEST_F(HostRuntime, works_with_little_address_space) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than this test leaves";
#endif
  EXPECT_EQ(0, test::in_child([] {
              std::size_t pages = 0;
              std::ifstream("/proc/self/statm") >> pages;
              const std::size_t limit_bytes = pages * kPageBytes + (std::size_t{3} << 30);
              const rlimit limit{limit_bytes, limit_bytes};
              if (pages == 0 || setrlimit(RLIMIT_AS, &limit) != 0) return 1;
              HostArena arena;  // another one: that of the runtime has its reservation already
              void* pointer = nullptr;
              if (!arena.allocate(0, MemoryKind::device, 100, pointer).ok()) return 2;
              if (!arena.may_own(pointer) || arena.find(pointer) == nullptr) return 3;
              return arena.release(pointer, HostArena::Origin::own).ok() ? 0 : 4;
            }));
}

TEST(HostArenaTest, ranges_are_given_out_lowest_first_and_merged) {
  AddressRanges ranges;
  ranges.add(1000, 300);
  const std::uintptr_t first = ranges.take(100);
  const std::uintptr_t second = ranges.take(100);
  const std::uintptr_t third = ranges.take(100);
  EXPECT_EQ(1000U, first);
  EXPECT_EQ(1100U, second);
  EXPECT_EQ(1200U, third);
  EXPECT_EQ(0U, ranges.take(1));
  ranges.release(first, 100);
  ranges.release(third, 100);
  EXPECT_EQ(0U, ranges.take(101)) << "two pieces";
  ranges.release(second, 100);
  EXPECT_EQ(1000U, ranges.take(300)) << "one piece again";
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  setenv("ACCORD_HOST_DEVICES", "3", 1);
  setenv("ACCORD_RUNTIME", "host", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
