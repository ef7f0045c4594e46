// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/registry.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <memory>
#include <thread>

#include "device/cuda/runtime.h"
#include "device/machine.h"
#include "support.h"

namespace accord::device {
namespace {

// First, while no runtime is active.
TEST(registry, everything_is_host_before_a_runtime_is_active) {
  ASSERT_EQ(1U, runtimes().size()) << "ACCORD_RUNTIME=host leaves the host runtime alone";
  EXPECT_FALSE(runtimes()[0]->active());
  int local = 0;
  EXPECT_EQ(MemoryKind::host, classify(&local).kind);
  EXPECT_FALSE(must_stage(&local));
  EXPECT_FALSE(must_stage(nullptr));
  EXPECT_FALSE(must_stage(reinterpret_cast<void*>(~std::uintptr_t{0})));  // as MPI_IN_PLACE
  EXPECT_TRUE(accelerator_present());
  EXPECT_TRUE(accelerator_on_machine());
  EXPECT_STREQ("host", default_runtime().name());
}

// Ranks of a machine must agree on what it has, whatever the environment hides from some.
TEST(registry, a_hidden_device_is_on_the_machine) {
  const auto no = []() noexcept { return false; };
  const auto yes = []() noexcept { return true; };
  const auto no_driver = []() noexcept -> const cuda::Driver* { return nullptr; };
  static const cuda::Vendor hidden{.name = "hidden",
                                   .driver = no_driver,
                                   .open_driver = no_driver,
                                   .active = no,
                                   .device_is_visible = no,
                                   .device_exists = yes,
                                   .problem = [] { return Status(); },
                                   .no_driver = "none"};
  static cuda::Vendor none = hidden;
  none.device_exists = no;
  static DeviceRuntime& with_hidden = cuda::make_runtime(hidden);
  static DeviceRuntime& with_none = cuda::make_runtime(none);
  EXPECT_FALSE(with_hidden.present());
  EXPECT_TRUE(with_hidden.on_machine());
  EXPECT_FALSE(with_none.on_machine());
}

TEST(registry, tells_host_memory_from_device_memory) {
  DeviceRuntime& runtime = default_runtime();
  void* device_memory = nullptr;
  void* managed = nullptr;
  void* pinned = nullptr;
  ASSERT_OK(runtime.allocate(0, MemoryKind::device, 100, device_memory));
  ASSERT_OK(runtime.allocate(0, MemoryKind::managed, 100, managed));
  ASSERT_OK(runtime.allocate(0, MemoryKind::pinned, 100, pinned));
  EXPECT_TRUE(must_stage(device_memory));
  EXPECT_TRUE(must_stage(managed));
  EXPECT_FALSE(must_stage(pinned));
  EXPECT_EQ(MemoryKind::device, classify(static_cast<char*>(device_memory) + 99).kind);
  EXPECT_EQ(MemoryKind::managed, classify(managed).kind);
  EXPECT_EQ(MemoryKind::pinned, classify(pinned).kind);
  EXPECT_EQ(&runtime, classify(pinned).runtime);

  int local = 0;
  static int global = 0;
  const auto small = std::make_unique<int>();
  const auto large = std::make_unique_for_overwrite<char[]>(std::size_t{64} << 20);
  void* const below_the_stack =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&local) - 16384);
  for (const void* pointer :
       {static_cast<const void*>(&local), static_cast<const void*>(&global),
        static_cast<const void*>(small.get()), static_cast<const void*>(large.get()),
        static_cast<const void*>(below_the_stack), static_cast<const void*>(nullptr),
        reinterpret_cast<const void*>(~std::uintptr_t{0})}) {
    EXPECT_FALSE(must_stage(pointer)) << pointer;
    EXPECT_EQ(MemoryKind::host, classify(pointer).kind) << pointer;
    EXPECT_EQ(nullptr, classify(pointer).runtime) << pointer;
  }
  EXPECT_OK(runtime.free(device_memory));
  EXPECT_OK(runtime.free(managed));
  EXPECT_OK(runtime.free(pinned));
}

// A thread whose stack lies right below device memory: the shortcut for stack addresses must stop
// at its end.
TEST(registry, stack_shortcut_ends_with_the_stack) {
  DeviceRuntime& runtime = default_runtime();
  void* pointer = nullptr;
  ASSERT_OK(runtime.allocate(0, MemoryKind::managed, std::size_t{4} << 20, pointer));
  pthread_attr_t attributes;
  ASSERT_EQ(0, pthread_attr_init(&attributes));
  constexpr std::size_t kStackBytes = std::size_t{2} << 20;
  ASSERT_EQ(0, pthread_attr_setstack(&attributes, pointer, kStackBytes));
  struct Question {
    void* beyond;
    bool local_staged;
    bool beyond_staged;
  } question{static_cast<char*>(pointer) + kStackBytes, true, false};
  pthread_t thread;
  ASSERT_EQ(0, pthread_create(
                   &thread, &attributes,
                   [](void* argument) -> void* {
                     auto* asked = static_cast<Question*>(argument);
                     int local = 0;
                     asked->local_staged = must_stage(&local);
                     asked->beyond_staged = must_stage(asked->beyond);
                     return nullptr;
                   },
                   &question));
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_FALSE(question.local_staged);
  EXPECT_TRUE(question.beyond_staged);
  EXPECT_OK(runtime.free(pointer));
}

}  // namespace
}  // namespace accord::device
