// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The HIP runtime over the stand-in for AMD's library, in one process and between two.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "device/cuda/pack.h"
#include "device/device_runtime.h"
#include "device/hip/driver.h"
#include "device/partition_reducer.h"
#include "device/registry.h"
#include "driver_control.h"
#include "inbox_calls.h"
#include "pack_check.h"
#include "reduction_check.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& hip_runtime();
DeviceRuntime& cuda_runtime();

namespace {

using cuda::Result;
using test::hip::DriverControl;

class Hip : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(2, runtime_.device_count());
    ASSERT_TRUE(library().found());
    library().set_device(1);
    (void)library().last_error();
  }
  // Whatever has been done: the program's current device stays, and none of our errors is its last.
  void TearDown() override {
    EXPECT_EQ(1, library().current_device());
    EXPECT_EQ(Result::success, library().last_error());
  }

  static const DriverControl& library() {
    static const DriverControl only;
    return only;
  }

  void* allocate(MemoryKind kind, std::size_t size_bytes, int device = 0) {
    void* memory = nullptr;
    EXPECT_OK(runtime_.allocate(device, kind, size_bytes, memory));
    return memory;
  }
  Status copy(void* dst, const void* src, std::size_t size_bytes, int device = 0) {
    const Copy one{dst, src, size_bytes};
    return runtime_.copy(device, {&one, 1});
  }
  std::vector<unsigned char> contents(const void* memory, std::size_t size_bytes) {
    std::vector<unsigned char> bytes(size_bytes);
    EXPECT_OK(copy(bytes.data(), memory, size_bytes));
    return bytes;
  }

  DeviceRuntime& runtime_ = hip_runtime();
};

TEST_F(Hip, is_the_runtime_that_was_asked_for) {
  EXPECT_EQ(&runtime_, &default_runtime());
  EXPECT_STREQ("hip", runtime_.name());
  EXPECT_TRUE(runtime_.present());
  EXPECT_TRUE(runtime_.active());
  EXPECT_OK(runtime_.problem());
}

// Before any other test has memory of a device.
TEST_F(Hip, knows_the_device_that_is_in_use) {
  EXPECT_EQ(0, test::in_child([] {
              DeviceRuntime& runtime = hip_runtime();
              if (runtime.device_in_use() != -1) return 1;
              void* memory = nullptr;
              if (!runtime.allocate(1, MemoryKind::device, 100, memory).ok()) return 2;
              return runtime.device_in_use() == 1 ? 0 : 3;
            }));
}

TEST_F(Hip, describes_its_devices) {
  DeviceDescription description;
  ASSERT_OK(runtime_.describe(1, description));
  EXPECT_EQ("AMD stand-in 1", description.name);
  EXPECT_EQ("GPU-31313131-3131-3131-3131-313131313131", description.uuid);
  EXPECT_EQ(std::size_t{1} << 32, description.memory_bytes);
  const Status status = runtime_.describe(2, description);
  EXPECT_EQ("hip has no device 2 (2 devices)", status.message());
  const std::vector<DeviceLink> links = runtime_.links();
  ASSERT_EQ(2U, links.size());
  EXPECT_TRUE(links[0].peer_access);
  EXPECT_EQ(0, links[0].performance_rank);
  EXPECT_NE(runtime_.kernel_place(0).device, runtime_.kernel_place(1).device);
}

TEST_F(Hip, tells_what_a_pointer_is) {
  constexpr std::size_t kBytes = 10000;
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::pinned}) {
    auto* const memory = static_cast<std::byte*>(allocate(kind, kBytes));
    const std::byte* const inside = memory + 1234;
    PointerInfo info;
    ASSERT_TRUE(runtime_.classify(inside, info));
    EXPECT_EQ(kind, info.kind);
    EXPECT_EQ(&runtime_, info.runtime);
    EXPECT_EQ(0, info.device);
    EXPECT_EQ(memory, info.base);
    EXPECT_EQ(kBytes, info.size_bytes);
    EXPECT_NE(0U, info.buffer_id);
    EXPECT_EQ(kind != MemoryKind::pinned, runtime_.must_stage(inside));
    PointerInfo again;
    ASSERT_TRUE(runtime_.classify(memory, again));
    EXPECT_EQ(info, again);
    EXPECT_FALSE(runtime_.classify(memory + kBytes, info));
    EXPECT_OK(runtime_.free(memory));
    EXPECT_FALSE(runtime_.classify(inside, info));
  }
}

TEST_F(Hip, leaves_plain_memory_alone) {
  const std::vector<int> plain(1000);
  PointerInfo info;
  EXPECT_FALSE(runtime_.classify(plain.data(), info));
  EXPECT_FALSE(runtime_.must_stage(plain.data()));
  EXPECT_FALSE(runtime_.classify(nullptr, info));
  EXPECT_CODE(invalid_argument, runtime_.free(const_cast<int*>(plain.data())));
}

TEST_F(Hip, copies_one_range) {
  const auto data = test::pattern(300000, 1);
  void* const here = allocate(MemoryKind::device, data.size());
  void* const there = allocate(MemoryKind::device, data.size(), 1);
  EXPECT_OK(copy(here, data.data(), data.size()));
  EXPECT_OK(copy(there, here, data.size()));
  EXPECT_EQ(data, contents(there, data.size()));
  EXPECT_OK(runtime_.free(here));
  EXPECT_OK(runtime_.free(there));
}

TEST_F(Hip, orders_behind_what_the_program_has_copied) {
  constexpr std::size_t kBytes = 5000;
  const auto data = test::pattern(kBytes, 4);
  void* const source = allocate(MemoryKind::device, kBytes, 1);
  void* const buffer = allocate(MemoryKind::device, kBytes, 1);
  ASSERT_OK(copy(source, data.data(), kBytes, 1));
  ASSERT_EQ(Result::success, library().copy_within(buffer, source, kBytes));
  EXPECT_NE(data, contents(buffer, kBytes)) << "the stand-in has nothing to show";
  (void)classify_argument(buffer);
  EXPECT_EQ(data, contents(buffer, kBytes));
  ASSERT_EQ(Result::success, library().fill(buffer, 0x5a, kBytes));
  order_behind_program();
  EXPECT_EQ(std::vector<unsigned char>(kBytes, 0x5a), contents(buffer, kBytes));
  // While another device is current: the memset is in the default stream of the first.
  ASSERT_EQ(Result::success, library().fill(buffer, 0x33, kBytes));
  library().set_device(0);
  (void)classify_argument(buffer);
  library().set_device(1);
  EXPECT_EQ(std::vector<unsigned char>(kBytes, 0x33), contents(buffer, kBytes));
  EXPECT_OK(runtime_.free(source));
  EXPECT_OK(runtime_.free(buffer));
}

TEST_F(Hip, copies_rectangles_and_batches_without_waiting) {
  const auto data = test::pattern(4096, 2);
  auto* const memory = static_cast<std::byte*>(allocate(MemoryKind::device, data.size()));
  ASSERT_OK(copy(memory, data.data(), data.size()));
  std::vector<unsigned char> found(300);
  const Copy copies[] = {{.dst = found.data(),
                          .src = memory,
                          .row_bytes = 10,
                          .rows = 20,
                          .dst_pitch_bytes = 10,
                          .src_pitch_bytes = 100},
                         {.dst = found.data() + 200, .src = memory + 2500, .row_bytes = 100}};
  CopyTicket ticket;
  ASSERT_OK(runtime_.copy_begin(0, copies, ticket));
  for (bool done = false; !done;) ASSERT_OK(runtime_.copy_done(ticket, done));
  std::vector<unsigned char> wanted;
  for (std::ptrdiff_t row = 0; row < 20; ++row)
    wanted.insert(wanted.end(), data.begin() + row * 100, data.begin() + row * 100 + 10);
  wanted.insert(wanted.end(), data.begin() + 2500, data.begin() + 2600);
  EXPECT_EQ(wanted, found);
  EXPECT_OK(runtime_.free(memory));
}

TEST_F(Hip, makes_staging_memory_that_is_page_locked_once_a_device_is_used) {
  void* const memory = allocate(MemoryKind::device, 100);
  for (const std::size_t size_bytes : {std::size_t{8192}, std::size_t{3} << 20}) {
    void* staging = nullptr;
    ASSERT_OK(runtime_.host_allocate(size_bytes, staging));
    std::memset(staging, 1, size_bytes);
    PointerInfo info;
    ASSERT_TRUE(runtime_.classify(staging, info));
    EXPECT_EQ(MemoryKind::pinned, info.kind);
    runtime_.host_free(staging, size_bytes);
  }
  EXPECT_OK(runtime_.free(memory));
}

// What another process of this program does with exported memory; see main.
int open_in_child(char** arguments) {
  DeviceRuntime& runtime = hip_runtime();
  if (runtime.device_count() != 2) return 1;
  ExportedMemory exported;
  for (const char* text = arguments[0]; *text != '\0'; text += 2) {
    const char byte[3] = {text[0], text[1], '\0'};
    exported.bytes.push_back(static_cast<std::byte>(std::strtoul(byte, nullptr, 16)));
  }
  void* opened = nullptr;
  if (!runtime.open_memory(1, exported, opened).ok()) return 2;
  PointerInfo info;
  if (!runtime.classify(opened, info) || info.kind != MemoryKind::device || info.device != 1)
    return 3;
  std::vector<unsigned char> bytes(info.size_bytes);
  const Copy out{bytes.data(), opened, bytes.size()};
  if (!runtime.copy(1, {&out, 1}).ok() || bytes != test::pattern(bytes.size(), 3)) return 4;
  const unsigned char answer = 42;
  const Copy in{opened, &answer, 1};
  if (!runtime.copy(1, {&in, 1}).ok()) return 5;
  if (!runtime.close_memory(opened).ok()) return 6;
  return runtime.classify(opened, info) ? 7 : 0;
}

TEST_F(Hip, lends_memory_to_another_process) {
  const auto data = test::pattern(50000, 3);
  auto* const memory = static_cast<std::byte*>(allocate(MemoryKind::device, data.size()));
  ASSERT_OK(copy(memory, data.data(), data.size()));
  ExportedMemory exported;
  ASSERT_OK(runtime_.export_memory(memory + 777, exported));
  EXPECT_EQ(777U, exported.offset_bytes);
  EXPECT_EQ(-1, exported.file_descriptor);
  std::string text;
  for (const std::byte byte : exported.bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(byte));
    text += two;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/proc/self/exe", "hip_runtime_test", "open", text.c_str(), nullptr);
    std::_Exit(100);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
  EXPECT_EQ(42, contents(memory, 1)[0]);
  EXPECT_OK(runtime_.free(memory));
}

// In a process with ACCORD_RUNTIME=auto: nothing is loaded for who does not use HIP, and what the
// program loads later is found.
int come_late() {
  std::vector<int> plain(1 << 20);
  PointerInfo info;
  if (hip_runtime().classify(plain.data(), info) || hip::driver() != nullptr) return 1;
  if (::dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD) != nullptr) return 2;
  if (::dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_LOCAL) == nullptr) return 3;
  if (hip::driver() == nullptr) return 4;
  void* memory = nullptr;
  const auto allocate = test::hip::DriverControl().find<Result(void**, std::size_t)>("hipMalloc");
  if (allocate(&memory, 100) != Result::success) return 5;
  return hip_runtime().classify(memory, info) && info.kind == MemoryKind::device ? 0 : 6;
}

TEST_F(Hip, is_left_alone_until_the_program_loads_it) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("ACCORD_RUNTIME", "auto", 1);
    ::execl("/proc/self/exe", "hip_runtime_test", "late", nullptr);
    std::_Exit(100);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(Hip, exports_only_device_memory_and_opens_only_its_own_handles) {
  void* const pinned = allocate(MemoryKind::pinned, 100);
  ExportedMemory exported;
  EXPECT_CODE(unsupported, runtime_.export_memory(pinned, exported));
  EXPECT_OK(runtime_.free(pinned));
  void* const memory = allocate(MemoryKind::device, 100);
  ASSERT_OK(runtime_.export_memory(memory, exported));
  // The handles of CUDA's runtime have the same form, and its name in them.
  auto* const name =
      static_cast<std::byte*>(memmem(exported.bytes.data(), exported.bytes.size(), "hip", 3));
  ASSERT_NE(nullptr, name);
  std::memcpy(name, "cuda", 4);
  void* opened = nullptr;
  EXPECT_CODE(invalid_argument, runtime_.open_memory(0, exported, opened));
  EXPECT_OK(runtime_.free(memory));
}

TEST_F(Hip, runs_work_of_a_library_on_a_stream) {
  void* const memory = allocate(MemoryKind::device, 64);
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(0, stream));
  const auto data = test::pattern(64, 5);
  using CopyAsync = Result(void*, const void*, std::size_t, hip::CopyKind, void*);
  auto* const copy_async = library().find<CopyAsync>("hipMemcpyAsync");
  const auto work = [&](void* on) {
    EXPECT_EQ(0, library().current_device());
    const Result result =
        copy_async(memory, data.data(), data.size(), hip::CopyKind::by_address, on);
    return result == Result::success ? Status() : Status(StatusCode::device_error, "no copy");
  };
  ASSERT_OK(stream->enqueue(work));
  for (bool done = false; !done;) ASSERT_OK(stream->poll(done));
  EXPECT_EQ(data, contents(memory, 64));
  // The same as a recording.
  const auto zeros = std::vector<unsigned char>(64);
  ASSERT_OK(copy(memory, zeros.data(), 64));
  std::unique_ptr<Recording> recording;
  ASSERT_OK(stream->record(work, recording));
  EXPECT_EQ(zeros, contents(memory, 64));
  ASSERT_OK(stream->enqueue([&](void* on) { return recording->put(on); }));
  for (bool done = false; !done;) ASSERT_OK(stream->poll(done));
  EXPECT_EQ(data, contents(memory, 64));
  recording.reset();
  stream.reset();
  EXPECT_OK(runtime_.free(memory));
}

// What is left there may wait for what the caller does next.
TEST_F(Hip, waits_for_no_work_of_a_library_that_has_failed) {
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(0, stream));
  static std::atomic<bool> is_let_go{false};
  using Enqueue = int(void*, void (*)(void*), void (*)(void*), void*);
  auto* const enqueue = library().find<Enqueue>("accord_test_hip_enqueue");
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

TEST_F(Hip, says_what_it_cannot_do) {
  std::unique_ptr<PartitionReducer> reducer;
  EXPECT_CODE(unsupported, runtime_.make_partition_reducer(0, {}, nullptr, reducer));
}

TEST_F(Hip, names_its_own_functions_in_errors) {
  void* memory = nullptr;
  library().fail("hipMalloc:1");
  const Status status = runtime_.allocate(0, MemoryKind::device, 100, memory);
  library().fail("");
  EXPECT_EQ("hip hipMalloc: hipErrorOfStandIn 999 (said by the stand-in)", status.message());
}

// HIP 7 keeps an error of the program's until it asks; older ones the result of the last call.
TEST_F(Hip, leaves_the_programs_own_error_where_hip_does) {
  void* const memory = allocate(MemoryKind::device, 100);
  const std::vector<unsigned char> data(100);
  library().set_device(99);
  EXPECT_OK(copy(memory, data.data(), data.size()));
  EXPECT_TRUE(runtime_.must_stage(memory));
  const char* const version = std::getenv("ACCORD_TEST_HIP_VERSION");
  const bool keeps = version != nullptr && *version == '7';
  EXPECT_EQ(keeps, library().last_error() != Result::success);
  EXPECT_OK(runtime_.free(memory));
}

// Where HIP does not answer, the host MPI must not get what may be device memory.
TEST_F(Hip, stages_what_it_cannot_ask_about) {
  void* const memory = allocate(MemoryKind::device, 100);
  library().fail("hipPointerGetAttributes:1+");
  EXPECT_TRUE(runtime_.must_stage(memory));
  PointerInfo info;
  EXPECT_TRUE(runtime_.classify(memory, info));
  EXPECT_EQ(MemoryKind::device, info.kind);
  library().fail("");
  EXPECT_OK(runtime_.free(memory));
}

class HipKernels : public Hip {
 protected:
  void SetUp() override {
    Hip::SetUp();
    void* const memory = allocate(MemoryKind::device, 100);  // a device is in use from now on
    if (!runtime_.can_reduce(ReduceOp::sum, Element::int32))
      GTEST_SKIP() << "the library was built without kernels for AMD's GPUs";
    EXPECT_OK(runtime_.free(memory));
  }
};

using test::Half;
using test::ValueAndIndex;
#define ACCORD_ELEMENT_TEST(element, ...)                         \
  TEST_F(HipKernels, reduce_##element) {                          \
    test::check_element<__VA_ARGS__>(runtime_, Element::element); \
  }
ACCORD_TEST_ELEMENTS(ACCORD_ELEMENT_TEST)
#undef ACCORD_ELEMENT_TEST

TEST_F(HipKernels, reduce_many_sources) { test::check_many_sources(runtime_); }
TEST_F(HipKernels, reduce_any_kind_of_memory) { test::check_kinds_of_memory(runtime_); }
TEST_F(HipKernels, reduce_refuses_nonsense) { test::check_errors(runtime_); }

TEST_F(HipKernels, exchange_through_inboxes) {
  for (const int ranks : {2, 3, 4}) {
    test::InboxCalls calls;
    ASSERT_OK(calls.open(runtime_, ranks, 1));
    calls.run_all();
    EXPECT_OK(calls.close());
  }
}

// A launch that fails, the second of an exchange too, is an error of that exchange alone.
TEST_F(HipKernels, exchange_again_after_an_error) {
  test::InboxRank rank;
  ASSERT_OK(rank.open(runtime_, 0, 0, 1));
  ASSERT_OK(test::InboxRank::connect({&rank, 1}));
  const auto run = [&] {
    InboxTicket ticket = rank.ticket(100);
    ticket.exchange.send_to = ticket.exchange.receive_from = inbox_bit(0);
    const Status status = rank.run(ticket);
    EXPECT_EQ(InboxTicket::State::idle, ticket.state);
    return status;
  };
  for (const char* call :
       {"hipModuleLaunchKernel:1", "hipModuleLaunchKernel:2", "hipEventQuery:1"}) {
    library().fail(call);
    EXPECT_FALSE(run().ok()) << call;
    library().fail("");
    EXPECT_OK(run());
  }
  (void)library().last_error();
  EXPECT_OK(rank.close());
}

TEST_F(HipKernels, follow_layouts) {
  ::setenv("ACCORD_TEST_PACK", "kernel", 1);
  const std::uint64_t before = cuda::pack_launches();
  for (const MemoryKind other : {MemoryKind::device, MemoryKind::pinned})
    test::Layouts(runtime_, other).check(200, 7);
  EXPECT_GT(cuda::pack_launches(), before);
}

// Kernels get the host's address, so they are only for memory that has no other on the device.
TEST_F(HipKernels, leave_host_memory_alone_that_a_device_finds_elsewhere) {
  const bool elsewhere = std::getenv("ACCORD_TEST_HIP_REGISTERED") != nullptr;
  ::setenv("ACCORD_TEST_PACK", "kernel", 1);
  constexpr std::size_t kBytes = 8192;
  alignas(4096) static unsigned char pages[kBytes];
  const auto enter = library().find<Result(void*, std::size_t, unsigned)>("hipHostRegister");
  const auto leave = library().find<Result(void*)>("hipHostUnregister");
  ASSERT_EQ(Result::success, enter(pages, kBytes, 0));
  const auto data = test::pattern(2 * kBytes, 9);
  auto* const memory = static_cast<std::byte*>(allocate(MemoryKind::device, data.size()));
  ASSERT_OK(copy(memory, data.data(), data.size()));
  const std::uint64_t before = cuda::pack_launches();
  CopyBatch batch;
  batch.append({.type = std::make_shared<const Typemap>(std::vector<device::Run>{{0, 4, 0}}, 8),
                .elements = memory,
                .other = reinterpret_cast<std::byte*>(pages),
                .first_bytes = 0,
                .length_bytes = kBytes,
                .direction = LayoutCopy::Direction::pack});
  ASSERT_OK(runtime_.copy_batch(0, batch));
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(data[i / 4 * 8 + i % 4], pages[i]) << i;
  EXPECT_EQ(elsewhere ? before : before + 1, cuda::pack_launches());
  const void* const sources[] = {memory, pages};
  CopyTicket ticket;
  const Status status =
      runtime_.reduce_begin(0, {memory, sources, kBytes, ReduceOp::bxor, Element::uint8}, ticket);
  EXPECT_EQ(elsewhere ? StatusCode::unsupported : StatusCode::ok, status.code());
  for (bool done = false; !done;) ASSERT_OK(runtime_.copy_done(ticket, done));
  EXPECT_EQ(Result::success, leave(pages));
  EXPECT_OK(runtime_.free(memory));
}

TEST_F(HipKernels, work_from_any_thread) {
  test::Slots slots(runtime_, 3, 1000, MemoryKind::device, 1);
  for (std::size_t i = 0; i < 3; ++i) slots.upload(i);
  std::thread([&] {
    const void* const sources[] = {slots.at(1), slots.at(2)};
    CopyTicket ticket;
    ASSERT_OK(runtime_.reduce_begin(1, {slots.at(0), sources, 1000, ReduceOp::bxor, Element::uint8},
                                    ticket));
    for (bool done = false; !done;) ASSERT_OK(runtime_.copy_done(ticket, done));
    EXPECT_EQ(0, library().current_device());
  }).join();
  const auto seen = slots.download(0);
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(slots.contents(1)[i] ^ slots.contents(2)[i], seen[i]) << i;
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "open") == 0)
    return accord::device::open_in_child(argv + 2);
  if (argc == 2 && std::strcmp(argv[1], "late") == 0) return accord::device::come_late();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
