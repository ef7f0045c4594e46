// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The Level Zero runtime over the real loader, its validation layer and the test driver.
#include <gtest/gtest.h>
#include <level_zero/ze_api.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "device/device_runtime.h"
#include "device/registry.h"
#include "driver_control.h"

namespace accord::device {
DeviceRuntime& level_zero_runtime();
}

namespace {

using namespace accord;
using namespace accord::device;
using test::Held;
using test::level_zero::DriverControl;

using Bytes = std::vector<std::byte>;

DeviceRuntime& runtime() { return level_zero_runtime(); }

#define ASSERT_OK(expression)                       \
  do {                                              \
    const accord::Status status_ = (expression);    \
    ASSERT_TRUE(status_.ok()) << status_.message(); \
  } while (false)

template <class Function>
Function* loader_function(const char* name) {
  void* loader = ::dlopen("libze_loader.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(::dlsym(loader, name));
}

Bytes random_bytes(std::size_t size_bytes) {
  static std::mt19937 random(7);
  Bytes bytes(size_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Memory of the runtime for the time of a test.
struct Memory {
  explicit Memory(std::size_t bytes, MemoryKind kind = MemoryKind::device, int device = 0)
      : size_bytes(bytes) {
    const Status status = runtime().allocate(device, kind, bytes, pointer);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  ~Memory() { EXPECT_TRUE(runtime().free(pointer).ok()); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* at(std::size_t offset_bytes) const {
    return static_cast<std::byte*>(pointer) + offset_bytes;
  }
  void set(const Bytes& bytes) const {
    const Copy copy{.dst = pointer, .src = bytes.data(), .row_bytes = bytes.size()};
    ASSERT_OK(runtime().copy(0, {&copy, 1}));
  }
  Bytes get() const {
    Bytes bytes(size_bytes);
    const Copy copy{.dst = bytes.data(), .src = pointer, .row_bytes = size_bytes};
    const Status status = runtime().copy(0, {&copy, 1});
    EXPECT_TRUE(status.ok()) << status.message();
    return bytes;
  }

  void* pointer = nullptr;
  std::size_t size_bytes;
};

TEST(level_zero_runtime, the_loader_validates) {
  ASSERT_GT(runtime().device_count(), 0);
  struct Component {  // zel_component_version_t
    char name[64];
    int spec_version;
    int version[3];
  };
  auto* const get = loader_function<int(std::size_t*, Component*)>("zelLoaderGetVersions");
  ASSERT_NE(get, nullptr);
  std::size_t count = 0;
  ASSERT_EQ(get(&count, nullptr), 0);
  std::vector<Component> components(count);
  ASSERT_EQ(get(&count, components.data()), 0);
  bool validates = false;
  for (const Component& next : components)
    validates = validates || std::string(next.name).find("validation") != std::string::npos;
  EXPECT_TRUE(validates);
}

TEST(level_zero_runtime, shows_its_devices) {
  EXPECT_TRUE(runtime().active());
  EXPECT_TRUE(runtime().problem().ok()) << runtime().problem().message();
  EXPECT_TRUE(runtime().present());
  ASSERT_EQ(runtime().device_count(), 2);
  DeviceDescription description;
  ASSERT_OK(runtime().describe(1, description));
  EXPECT_EQ(description.name, "Level Zero test device 1");
  EXPECT_EQ(description.uuid, "GPU-21212121-2121-2121-2121-212121212121");
  EXPECT_EQ(description.memory_bytes, std::size_t{4} << 30);
  EXPECT_FALSE(runtime().describe(2, description).ok());
  ASSERT_EQ(runtime().links().size(), 2U);
  EXPECT_TRUE(runtime().links()[0].peer_access);
  EXPECT_EQ(&default_runtime(), &runtime());
}

TEST(level_zero_runtime, tells_what_a_pointer_is) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::pinned}) {
    const Memory memory(5000, kind, kind == MemoryKind::device ? 1 : 0);
    PointerInfo info;
    ASSERT_TRUE(runtime().classify(memory.at(4999), info));
    EXPECT_EQ(info.kind, kind);
    EXPECT_EQ(info.runtime, &runtime());
    EXPECT_EQ(info.device, kind == MemoryKind::device ? 1 : 0);
    EXPECT_EQ(info.base, memory.pointer);
    EXPECT_EQ(info.size_bytes, 5000U);
    EXPECT_NE(info.buffer_id, 0U);
    EXPECT_EQ(runtime().must_stage(memory.at(1)), kind != MemoryKind::pinned);
    EXPECT_EQ(classify(memory.at(1)).kind, kind);
  }
  const Bytes plain(100000);
  PointerInfo info;
  EXPECT_FALSE(runtime().classify(plain.data(), info));
  EXPECT_FALSE(runtime().must_stage(plain.data()));
  EXPECT_EQ(runtime().device_in_use(), 0);
}

// One that was freed and made again at the same address is another.
TEST(level_zero_runtime, numbers_allocations) {
  PointerInfo before;
  void* pointer = nullptr;
  ASSERT_OK(runtime().allocate(0, MemoryKind::device, 4096, pointer));
  ASSERT_TRUE(runtime().classify(pointer, before));
  ASSERT_OK(runtime().free(pointer));
  EXPECT_FALSE(runtime().classify(pointer, before));
  void* again = nullptr;
  ASSERT_OK(runtime().allocate(0, MemoryKind::device, 4096, again));
  PointerInfo after;
  ASSERT_TRUE(runtime().classify(again, after));
  EXPECT_NE(before.buffer_id, after.buffer_id);
  ASSERT_OK(runtime().free(again));
}

// A program brings a context of its own, and may allocate on one tile of a device.
TEST(level_zero_runtime, knows_memory_of_the_program) {
  auto* const init = loader_function<decltype(zeInit)>("zeInit");
  auto* const drivers = loader_function<decltype(zeDriverGet)>("zeDriverGet");
  auto* const devices = loader_function<decltype(zeDeviceGet)>("zeDeviceGet");
  auto* const tiles = loader_function<decltype(zeDeviceGetSubDevices)>("zeDeviceGetSubDevices");
  auto* const make = loader_function<decltype(zeContextCreate)>("zeContextCreate");
  auto* const allocate = loader_function<decltype(zeMemAllocDevice)>("zeMemAllocDevice");
  auto* const release = loader_function<decltype(zeMemFree)>("zeMemFree");
  auto* const destroy = loader_function<decltype(zeContextDestroy)>("zeContextDestroy");
  ASSERT_EQ(init(0), ZE_RESULT_SUCCESS);
  std::uint32_t one = 1;
  ze_driver_handle_t driver = nullptr;
  ze_device_handle_t device = nullptr;
  ze_device_handle_t tile = nullptr;
  ze_context_handle_t context = nullptr;
  ASSERT_EQ(drivers(&one, &driver), ZE_RESULT_SUCCESS);
  ASSERT_EQ(devices(driver, &one, &device), ZE_RESULT_SUCCESS);
  ASSERT_EQ(tiles(device, &one, &tile), ZE_RESULT_SUCCESS);
  const ze_context_desc_t in{ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
  ASSERT_EQ(make(driver, &in, &context), ZE_RESULT_SUCCESS);
  const ze_device_mem_alloc_desc_t on{ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, nullptr, 0, 0};
  void* memory = nullptr;
  ASSERT_EQ(allocate(context, &on, 3000, 0, tile, &memory), ZE_RESULT_SUCCESS);
  PointerInfo info;
  ASSERT_TRUE(runtime().classify(memory, info));
  EXPECT_EQ(info.kind, MemoryKind::device);
  EXPECT_EQ(info.device, 0);
  Bytes bytes = random_bytes(3000);
  Bytes back(3000);
  const Copy in_copy{.dst = memory, .src = bytes.data(), .row_bytes = 3000};
  const Copy out_copy{.dst = back.data(), .src = memory, .row_bytes = 3000};
  ASSERT_OK(runtime().copy(0, {&in_copy, 1}));
  ASSERT_OK(runtime().copy(0, {&out_copy, 1}));
  EXPECT_EQ(back, bytes);
  ASSERT_EQ(release(context, memory), ZE_RESULT_SUCCESS);
  ASSERT_EQ(destroy(context), ZE_RESULT_SUCCESS);
}

// The same copies by the CPU on plain memory.
void copy_plain(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    for (std::size_t row = 0; row < copy.rows; ++row) {
      std::memcpy(static_cast<std::byte*>(copy.dst) + row * copy.dst_pitch_bytes,
                  static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes,
                  copy.row_bytes);
    }
  }
}

// Copies of every shape, each to a part of the destination of its own; rows that overlap are only
// read, rows that go backwards only written.
std::vector<Copy> shapes(std::byte* dst, const std::byte* src) {
  const auto backwards = static_cast<std::size_t>(-50);
  return {{.dst = dst, .src = src + 5, .row_bytes = 900},
          {.dst = dst + 1000,
           .src = src,
           .row_bytes = 7,
           .rows = 30,
           .dst_pitch_bytes = 9,
           .src_pitch_bytes = 20},
          {.dst = dst + 2000,
           .src = src,
           .row_bytes = 16,
           .rows = 10,
           .dst_pitch_bytes = 16,
           .src_pitch_bytes = 3},
          {.dst = dst + 3900,
           .src = src,
           .row_bytes = 20,
           .rows = 8,
           .dst_pitch_bytes = backwards,
           .src_pitch_bytes = 20},
          {.dst = dst + 4000,
           .src = src + 9,
           .row_bytes = 16,
           .rows = 8,
           .dst_pitch_bytes = 16,
           .src_pitch_bytes = 16},
          {.dst = dst + 5000, .src = src, .row_bytes = 0},
          {.dst = dst + 5001, .src = src, .row_bytes = 5, .rows = 0}};
}

TEST(level_zero_runtime, copies_every_shape) {
  constexpr std::size_t kBytes = 6000;
  for (const bool wait : {true, false}) {
    const Bytes from = random_bytes(kBytes);
    const Bytes before = random_bytes(kBytes);
    Bytes expected = before;
    copy_plain(shapes(expected.data(), from.data()));
    const Memory dst(kBytes);
    const Memory src(kBytes, MemoryKind::device, 1);
    dst.set(before);
    src.set(from);
    const std::vector<Copy> all = shapes(dst.at(0), src.at(0));
    if (wait) {
      ASSERT_OK(runtime().copy(0, all));
    } else {  // one by one and all in flight
      std::vector<CopyTicket> tickets(all.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_OK(runtime().copy_begin(0, {&all[i], 1}, tickets[i]));
      for (CopyTicket& ticket : tickets) {
        for (bool done = false; !done;) ASSERT_OK(runtime().copy_done(ticket, done));
        EXPECT_EQ(ticket.handle, nullptr);
      }
    }
    EXPECT_EQ(dst.get(), expected);
  }
}

bool memory_is(const char* what) {
  const char* asked = std::getenv("ACCORD_TEST_ZE_MEMORY");
  return asked != nullptr && std::string(asked) == what;
}

TEST(level_zero_runtime, keeps_memory_that_one_descriptor_does_not_hold) {
  if (!memory_is("spread")) GTEST_SKIP() << "for memory that is spread";
  const Memory memory(70000);
  ExportedMemory exported;
  EXPECT_EQ(runtime().export_memory(memory.pointer, exported).code(), StatusCode::unsupported);
}

TEST(level_zero_runtime, lends_memory_by_descriptor) {
  if (memory_is("spread")) GTEST_SKIP() << "for memory that can be lent";
  const Memory memory(70000);
  const Bytes bytes = random_bytes(70000);
  memory.set(bytes);
  ExportedMemory exported;
  ASSERT_OK(runtime().export_memory(memory.at(11), exported));
  EXPECT_EQ(exported.offset_bytes, 11U);
  ASSERT_GE(exported.file_descriptor, 0);
  void* opened = nullptr;
  ASSERT_OK(runtime().open_memory(1, exported, opened));
  ::close(exported.file_descriptor);
  EXPECT_NE(opened, memory.pointer);
  PointerInfo info;
  ASSERT_TRUE(runtime().classify(opened, info));
  EXPECT_EQ(info.device, 1);
  EXPECT_EQ(info.size_bytes, 70000U);
  Bytes back(70000);
  const Copy copy{.dst = back.data(), .src = opened, .row_bytes = back.size()};
  ASSERT_OK(runtime().copy(1, {&copy, 1}));
  EXPECT_EQ(back, bytes);
  EXPECT_FALSE(runtime().export_memory(opened, exported).ok());
  ASSERT_OK(runtime().close_memory(opened));
  EXPECT_FALSE(runtime().close_memory(opened).ok());
  EXPECT_FALSE(runtime().classify(opened, info));
  const Memory pinned(100, MemoryKind::pinned);
  EXPECT_EQ(runtime().export_memory(pinned.pointer, exported).code(), StatusCode::unsupported);
}

// Up to ACCORD_MAPPED_COPY_BYTES the CPU copies, without any command.
TEST(level_zero_runtime, maps_memory_for_the_shortest_copies) {
  if (memory_is("pool") || memory_is("spread")) GTEST_SKIP() << "for memory that can be mapped";
  const DriverControl driver;
  ASSERT_TRUE(driver.found());
  const Bytes bytes = random_bytes(128);
  void* pointer = nullptr;
  for (int round = 0; round < 3; ++round) {  // at the same address again and again
    ASSERT_OK(runtime().allocate(0, MemoryKind::device, 5000, pointer));
    driver.fail("zeCommandListAppendMemoryCopy:1+");
    auto* const middle = static_cast<std::byte*>(pointer) + 300;
    const Copy in{.dst = middle, .src = bytes.data() + round, .row_bytes = 64};
    Bytes back(64);
    const Copy out{.dst = back.data(), .src = middle, .row_bytes = 64};
    ASSERT_OK(runtime().copy(0, {&in, 1}));
    ASSERT_OK(runtime().copy(0, {&out, 1}));
    EXPECT_EQ(std::memcmp(back.data(), bytes.data() + round, 64), 0);
    const Copy longer{.dst = pointer, .src = bytes.data(), .row_bytes = 129 - 1};
    ASSERT_OK(runtime().copy(0, {&longer, 1}));
    const Copy too_long{.dst = pointer, .src = middle + 200, .row_bytes = 129};
    EXPECT_FALSE(runtime().copy(0, {&too_long, 1}).ok());
    driver.fail("");
    Bytes seen(64);
    const Copy by_list[2] = {{.dst = seen.data(), .src = middle, .row_bytes = 32},
                             {.dst = seen.data() + 32, .src = middle + 32, .row_bytes = 32}};
    ASSERT_OK(runtime().copy(0, by_list));
    EXPECT_EQ(seen, back);
    ASSERT_OK(runtime().free(pointer));
  }
}

// Where the mapping would not be the allocation's bytes, commands copy.
TEST(level_zero_runtime, copies_few_bytes_right) {
  const Memory memory(70000);
  const Bytes bytes = random_bytes(70000);
  memory.set(bytes);
  Bytes back(100);
  const Copy few{.dst = back.data(), .src = memory.at(777), .row_bytes = back.size()};
  ASSERT_OK(runtime().copy(0, {&few, 1}));
  EXPECT_EQ(std::memcmp(back.data(), bytes.data() + 777, back.size()), 0);
}

// Double precision, or any kernel at all: ranks agree on all reductions or none.
TEST(level_zero_runtime, reduces_nothing_where_it_cannot_reduce_all) {
  if (std::getenv("ACCORD_TEST_ZE_WITHOUT") == nullptr) GTEST_SKIP() << "for devices without";
  const Memory memory(64);
  EXPECT_FALSE(runtime().can_reduce(ReduceOp::sum, Element::int32));
  const void* const sources[] = {memory.pointer};
  CopyTicket ticket;
  EXPECT_EQ(
      runtime()
          .reduce_begin(0, {memory.pointer, sources, 4, ReduceOp::sum, Element::int32}, ticket)
          .code(),
      StatusCode::unsupported);
}

TEST(level_zero_runtime, keeps_nothing) {
  if (memory_is("spread")) GTEST_SKIP() << "for memory that can be lent";
  const DriverControl driver;
  const auto work = [&] {
    const Memory memory(70000);
    memory.set(random_bytes(70000));
    memory.set(random_bytes(64));  // by the CPU
    ExportedMemory exported;
    ASSERT_OK(runtime().export_memory(memory.pointer, exported));
    void* opened = nullptr;
    ASSERT_OK(runtime().open_memory(0, exported, opened));
    ::close(exported.file_descriptor);
    ASSERT_OK(runtime().close_memory(opened));
    void* host = nullptr;
    ASSERT_OK(runtime().host_allocate(4096, host));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host) % 4096, 0U);
    std::memset(host, 1, 4096);
    runtime().host_free(host, 4096);
  };
  work();
  const Held before = driver.held();
  for (int i = 0; i < 20; ++i) work();
  EXPECT_EQ(driver.held(), before);
}

}  // namespace
