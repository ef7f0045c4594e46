// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The Synapse runtime over the stand-in for Intel's library.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "device/device_runtime.h"
#include "device/registry.h"
#include "device/synapse/driver.h"
#include "driver_control.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& synapse_runtime();

namespace {

using synapse::Result;
using test::synapse::DriverControl;

class Synapse : public testing::Test {
 protected:
  static constexpr int kDevice = 2;

  void* allocate(MemoryKind kind, std::size_t size_bytes) {
    void* memory = nullptr;
    EXPECT_OK(runtime_.allocate(kDevice, kind, size_bytes, memory));
    return memory;
  }
  Status copy(void* dst, const void* src, std::size_t size_bytes) {
    const Copy one{dst, src, size_bytes};
    return runtime_.copy(kDevice, {&one, 1});
  }
  Status copy_later(std::span<const Copy> copies) {
    CopyTicket ticket;
    ACCORD_TRY(runtime_.copy_begin(kDevice, copies, ticket));
    for (bool done = false; !done;) ACCORD_TRY(runtime_.copy_done(ticket, done));
    return Status();
  }

  DeviceRuntime& runtime_ = synapse_runtime();
};

TEST_F(Synapse, is_the_runtime_that_was_asked_for) {
  EXPECT_EQ(&runtime_, &default_runtime());
  EXPECT_TRUE(runtime_.active());
  EXPECT_EQ(4, runtime_.device_count());
  EXPECT_OK(runtime_.problem());
}

TEST_F(Synapse, describes_devices_and_acquires_none) {
  EXPECT_EQ(0, test::in_child([] {
              DeviceRuntime& runtime = synapse_runtime();
              DeviceDescription description;
              if (!runtime.describe(1, description).ok()) return 1;
              if (description.name != "Gaudi 2" || description.uuid != "HPU-module-4") return 2;
              if (description.memory_bytes != std::size_t{1} << 34) return 3;
              return runtime.device_in_use() == -1 ? 0 : 4;
            }));
  DeviceDescription description;
  EXPECT_EQ("synapse has no device 4 (4 devices)", runtime_.describe(4, description).message());
}

TEST_F(Synapse, has_one_device) {
  void* const memory = allocate(MemoryKind::device, 100);
  EXPECT_EQ(kDevice, runtime_.device_in_use());
  void* other = nullptr;
  EXPECT_CODE(unsupported, runtime_.allocate(1, MemoryKind::device, 100, other));
  EXPECT_NE(0U, runtime_.kernel_place(kDevice).device);
  EXPECT_OK(runtime_.free(memory));
}

TEST_F(Synapse, tells_what_a_pointer_is) {
  constexpr std::size_t kBytes = 10000;
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    auto* const memory = static_cast<std::byte*>(allocate(kind, kBytes));
    PointerInfo info;
    ASSERT_TRUE(runtime_.classify(memory + 1234, info));
    EXPECT_EQ(kind, info.kind);
    EXPECT_EQ(&runtime_, info.runtime);
    EXPECT_EQ(kDevice, info.device);
    EXPECT_EQ(memory, info.base);
    EXPECT_EQ(kBytes, info.size_bytes);
    EXPECT_NE(0U, info.buffer_id);
    EXPECT_EQ(kind == MemoryKind::device, runtime_.must_stage(memory + 1234));
    EXPECT_OK(runtime_.free(memory));
    EXPECT_CODE(invalid_argument, runtime_.free(memory));
  }
  const std::vector<int> plain(1000);
  PointerInfo info;
  EXPECT_FALSE(runtime_.classify(plain.data(), info));
  EXPECT_FALSE(runtime_.must_stage(plain.data()));
  EXPECT_FALSE(runtime_.must_stage(nullptr));
  void* memory = nullptr;
  EXPECT_CODE(unsupported, runtime_.allocate(kDevice, MemoryKind::managed, 100, memory));
}

// Between device memory and plain and mapped host memory, longer than the buffer on the way.
TEST_F(Synapse, copies_ranges) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, (std::size_t{5} << 20) / 2}) {
    const auto data = test::pattern(bytes, 1);
    void* const here = allocate(MemoryKind::device, bytes);
    void* const there = allocate(MemoryKind::device, bytes);
    void* const pinned = allocate(MemoryKind::pinned, bytes);
    std::vector<unsigned char> back(bytes);
    EXPECT_OK(copy(here, data.data(), bytes));
    EXPECT_OK(copy(there, here, bytes));
    EXPECT_OK(copy(pinned, there, bytes));
    EXPECT_EQ(0, std::memcmp(pinned, data.data(), bytes));
    const Copy out{back.data(), there, bytes};
    EXPECT_OK(copy_later({&out, 1}));
    EXPECT_EQ(data, back);
    for (void* memory : {here, there, pinned}) EXPECT_OK(runtime_.free(memory));
  }
}

// A batch of both directions, rows apart, more of them than go at once.
TEST_F(Synapse, copies_rectangles_and_batches) {
  constexpr std::size_t kRows = 3000;
  constexpr std::size_t kPitch = 700;
  const auto data = test::pattern(kRows * kPitch, 2);
  auto* const first = static_cast<std::byte*>(allocate(MemoryKind::device, data.size()));
  auto* const second = static_cast<std::byte*>(allocate(MemoryKind::device, kRows * 500));
  ASSERT_OK(copy(first, data.data(), data.size()));
  std::vector<unsigned char> found(kRows * 600);
  const Copy copies[] = {
      {found.data(), first + 100, 600, kRows, 600, kPitch},
      {second, data.data(), 500, kRows, 500, kPitch},
  };
  ASSERT_OK(copy_later(copies));
  std::vector<unsigned char> other(kRows * 500);
  ASSERT_OK(copy(other.data(), second, other.size()));
  for (std::size_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(0, std::memcmp(&found[row * 600], &data[row * kPitch + 100], 600)) << row;
    ASSERT_EQ(0, std::memcmp(&other[row * 500], &data[row * kPitch], 500)) << row;
  }
  EXPECT_OK(runtime_.free(first));
  EXPECT_OK(runtime_.free(second));
}

TEST_F(Synapse, copies_from_any_thread) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      const auto data = test::pattern(300000, seed);
      void* const memory = allocate(MemoryKind::device, data.size());
      for (int times = 0; times < 5; ++times) {
        std::vector<unsigned char> back(data.size());
        EXPECT_OK(copy(memory, data.data(), data.size()));
        EXPECT_OK(copy(back.data(), memory, data.size()));
        EXPECT_EQ(data, back);
      }
      EXPECT_OK(runtime_.free(memory));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Synapse, makes_staging_memory_that_the_device_reaches) {
  void* const memory = allocate(MemoryKind::device, 100);
  void* staging = nullptr;
  ASSERT_OK(runtime_.host_allocate(8192, staging));
  std::memset(staging, 1, 8192);
  PointerInfo info;
  ASSERT_TRUE(runtime_.classify(staging, info));
  EXPECT_EQ(MemoryKind::pinned, info.kind);
  runtime_.host_free(staging, 8192);
  EXPECT_FALSE(runtime_.classify(staging, info));
  EXPECT_OK(runtime_.free(memory));
}

TEST_F(Synapse, runs_work_of_a_library_on_a_stream) {
  void* const memory = allocate(MemoryKind::device, 64);
  void* const pinned = allocate(MemoryKind::pinned, 64);
  std::memset(pinned, 7, 64);
  const DriverControl library;
  using CopyAsync = Result(void*, const std::uint64_t*, const std::uint64_t*, const std::uint64_t*,
                           synapse::Direction, std::uint64_t);
  auto* const copy_async = library.find<CopyAsync>("synMemCopyAsyncMultiple");
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(kDevice, stream));
  ASSERT_OK(stream->enqueue([&](void* on) {
    const std::uint64_t to = synapse::address_of(memory);
    const std::uint64_t from = synapse::address_of(pinned);
    const std::uint64_t bytes = 64;
    return copy_async(on, &from, &bytes, &to, synapse::Direction::to_device, 1) == Result::success
               ? Status()
               : Status(StatusCode::device_error, "no copy");
  }));
  for (bool done = false; !done;) ASSERT_OK(stream->poll(done));
  std::vector<unsigned char> back(64);
  EXPECT_OK(copy(back.data(), memory, 64));
  EXPECT_EQ(std::vector<unsigned char>(64, 7), back);
  const auto nothing = [](void*) { return Status(); };
  std::unique_ptr<Recording> recording;
  EXPECT_CODE(unsupported, stream->record(nothing, recording));
  stream.reset();
  EXPECT_OK(runtime_.free(memory));
  EXPECT_OK(runtime_.free(pinned));
}

// What is left there may wait for what the caller does next.
TEST_F(Synapse, waits_for_no_work_of_a_library_that_has_failed) {
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(kDevice, stream));
  static std::atomic<bool> is_let_go{false};
  const DriverControl library;
  using Enqueue = int(void*, void (*)(void*), void (*)(void*), void*);
  auto* const enqueue = library.find<Enqueue>("accord_test_synapse_enqueue");
  EXPECT_CODE(device_error, stream->enqueue([&](void* on) {
    const auto wait = [](void*) { is_let_go.wait(false); };
    EXPECT_EQ(0, enqueue(
                     on, wait, [](void*) {}, nullptr));
    return Status(StatusCode::device_error, "refused");
  }));
  bool done = true;
  EXPECT_OK(stream->poll(done));
  EXPECT_FALSE(done);
  is_let_go = true;
  is_let_go.notify_all();
  for (done = false; !done;) ASSERT_OK(stream->poll(done));
}

TEST_F(Synapse, says_what_it_cannot_do) {
  void* const memory = allocate(MemoryKind::device, 64);
  ExportedMemory exported;
  EXPECT_CODE(unsupported, runtime_.export_memory(memory, exported));
  InboxServer* server = nullptr;
  EXPECT_CODE(unsupported, runtime_.inbox_server(kDevice, server));
  EXPECT_FALSE(runtime_.can_reduce(ReduceOp::sum, Element::float32));
  EXPECT_OK(runtime_.free(memory));
}

// In a process with ACCORD_RUNTIME=auto, which loads the library, and acquires the device, itself:
// until then nothing is loaded or asked, from then on its memory is known.
int bring_own_device() {
  DeviceRuntime& runtime = synapse_runtime();
  const std::vector<int> plain(1000);
  if (runtime.must_stage(plain.data()) || synapse::driver() != nullptr) return 1;
  if (::dlopen("libSynapse.so", RTLD_NOW | RTLD_LOCAL) == nullptr) return 2;
  const DriverControl library;
  if (synapse::driver() == nullptr || runtime.device_in_use() != -1) return 3;
  std::uint32_t device = 77;
  std::uint64_t address = 0;
  if (library.find<Result()>("synInitialize")() != Result::success) return 4;
  if (library.find<Result(std::uint32_t*, unsigned)>("synDeviceAcquireByModuleId")(&device, 5) !=
      Result::success)
    return 5;
  using Malloc = Result(std::uint32_t, std::uint64_t, std::uint64_t, unsigned, std::uint64_t*);
  if (library.find<Malloc>("synDeviceMalloc")(device, 5000, 0, 0, &address) != Result::success)
    return 6;
  auto* const memory = reinterpret_cast<std::byte*>(address);
  PointerInfo info;
  if (!runtime.must_stage(memory + 10) || !runtime.classify(memory + 10, info)) return 7;
  if (info.kind != MemoryKind::device || info.buffer_id != 0 || info.size_bytes != 0) return 8;
  const auto data = test::pattern(5000, 4);
  std::vector<unsigned char> back(5000);
  const Copy in{memory, data.data(), 5000};
  const Copy out{back.data(), memory, 5000};
  if (!runtime.copy(0, {&in, 1}).ok() || !runtime.copy(0, {&out, 1}).ok()) return 9;
  if (runtime.free(memory).ok()) return 10;  // not Accord's
  void* own = nullptr;
  return data == back && runtime.allocate(3, MemoryKind::device, 100, own).ok() ? 0 : 11;
}

TEST_F(Synapse, works_with_a_device_that_the_program_has_acquired) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("ACCORD_RUNTIME", "auto", 1);
    ::execl("/proc/self/exe", "synapse_runtime_test", "own", nullptr);
    std::_Exit(100);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

// What a process says with its exit status: with one function that fails, every call is right or an
// error that names it; afterwards all works, and nothing is kept.
int go_on_while_failing(const std::string& failing) {
  DeviceRuntime& runtime = synapse_runtime();
  const auto data = test::pattern(3000, 6);
  const auto work = [&]() -> Status {
    struct Memory {
      void* pointer = nullptr;
      ~Memory() { (void)synapse_runtime().free(pointer); }
    } memory;
    ACCORD_TRY(runtime.allocate(1, MemoryKind::device, data.size(), memory.pointer));
    std::vector<unsigned char> back(data.size());
    const Copy in{memory.pointer, data.data(), data.size()};
    const Copy out{back.data(), memory.pointer, back.size()};
    ACCORD_TRY(runtime.copy(1, {&in, 1}));
    CopyTicket ticket;
    ACCORD_TRY(runtime.copy_begin(1, {&out, 1}, ticket));
    for (bool done = false; !done;) ACCORD_TRY(runtime.copy_done(ticket, done));
    if (back != data) std::_Exit(3);
    std::unique_ptr<LibraryStream> stream;
    ACCORD_TRY(runtime.make_stream(1, stream));
    ACCORD_TRY(stream->enqueue([](void*) { return Status(); }));
    for (bool done = false; !done;) ACCORD_TRY(stream->poll(done));
    void* staging = nullptr;
    ACCORD_TRY(runtime.host_allocate(data.size(), staging));
    runtime.host_free(staging, data.size());
    return Status();
  };
  ::setenv("ACCORD_TEST_SYNAPSE_FAIL", failing.c_str(), 1);
  const Status failed = work();
  if (!failed.ok() && failed.message().find("synapse") == std::string::npos) return 4;
  const DriverControl library;
  library.fail("");
  if (!work().ok() || !work().ok()) return 5;
  const test::Held before = library.held();
  for (int times = 0; times < 5; ++times) {
    library.fail(failing);
    (void)work();
    library.fail("");
    if (!work().ok()) return 6;
  }
  const bool releases = test::synapse::kReleasing.contains(failing.substr(0, failing.find(':')));
  return releases || library.held() == before ? 0 : 7;
}

class SynapseErrors : public testing::TestWithParam<std::string> {};

TEST_P(SynapseErrors, end_in_a_status) {
  for (const char* when : {":1", ":2", ":3", ":1+", ":2+"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/proc/self/exe", "synapse_runtime_test", "fail", (GetParam() + when).c_str(),
              nullptr);
      std::_Exit(100);
    }
    int status = 0;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status)) << GetParam() << when;
    EXPECT_EQ(0, WEXITSTATUS(status)) << GetParam() << when;
  }
}

INSTANTIATE_TEST_SUITE_P(synapse, SynapseErrors, testing::ValuesIn(test::synapse::kFunctions),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "own") == 0) return accord::device::bring_own_device();
  if (argc == 3 && std::strcmp(argv[1], "fail") == 0)
    return accord::device::go_on_while_failing(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
