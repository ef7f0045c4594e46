// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a program's synchronous calls have put into a buffer is seen by the next MPI call on it,
// though CUDA returns from them before they have landed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "cuda_fixture.h"
#include "device/registry.h"
#include "fake_cuda_control.h"

namespace accord::device {
namespace {

using cuda::CaptureMode;
using cuda::Context;
using cuda::DevicePointer;
using cuda::Result;
using cuda::Stream;
using test::contents;
using test::driver;
using test::fake_cuda;
using test::pattern;
using test::program;

constexpr std::size_t kBytes = std::size_t{1} << 20;

class ProgramOrderTest : public test::Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    if (IsSkipped()) return;
    ASSERT_CUDA(driver().primary_context_set_flags(0, 0));  // as a program begins
    buffer_ = allocate(kBytes);
    other_ = allocate(kBytes);
  }
  void TearDown() override {
    if (!IsSkipped() && primary_ != nullptr) (void)driver().primary_context_set_flags(0, 0);
    Cuda::TearDown();
  }

  static DevicePointer at(const void* pointer) { return cuda::address_of(pointer); }
  // What an MPI call reads of the buffer.
  static std::vector<unsigned char> in_call(const std::byte* buffer) {
    (void)classify_argument(buffer);
    return contents(buffer, kBytes);
  }
  // All that returns early, each into `to` right before a call.
  void expect_order(std::byte* to) {
    const auto data = pattern(kBytes, ++seed_);
    EXPECT_CUDA(program().copy_to_device(at(to), data.data(), kBytes));
    EXPECT_EQ(data, in_call(to));
    EXPECT_CUDA(program().fill(at(to), static_cast<unsigned char>(seed_), kBytes));
    EXPECT_EQ(std::vector<unsigned char>(kBytes, static_cast<unsigned char>(seed_)), in_call(to));
    EXPECT_CUDA(program().copy_to_device(at(other_), data.data(), kBytes));
    EXPECT_CUDA(program().copy_within(at(to), at(other_), kBytes));
    EXPECT_EQ(data, in_call(to));
  }
  static bool is_flagged(int device = 0) {
    unsigned flags = 0;
    int is_active = 0;
    EXPECT_CUDA(driver().primary_context_get_state(device, &flags, &is_active));
    return (flags & cuda::kContextSyncMemoryOperations) != 0;
  }

  // A thread sets it, which may take longer than the call waits.
  static bool is_flagged_soon(int device = 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_flagged(device) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return is_flagged(device);
  }

  std::byte* buffer_ = nullptr;
  std::byte* other_ = nullptr;
  unsigned seed_ = 0;
};

TEST_F(ProgramOrderTest, copies_have_landed_from_the_first_call_on) {
  expect_order(buffer_);
  expect_order(buffer_);
}

TEST_F(ProgramOrderTest, a_driver_that_is_asked_nothing_copies_late) {
  if (fake_cuda() == nullptr) GTEST_SKIP() << "a GPU may be fast enough";
  const auto data = pattern(kBytes, 77);
  ASSERT_CUDA(program().copy_to_device(at(buffer_), data.data(), kBytes));
  EXPECT_NE(data, contents(buffer_, kBytes));
}

TEST_F(ProgramOrderTest, every_kind_of_memory) {
  DevicePointer pooled = 0;
  ASSERT_CUDA(program().memory_allocate_async(&pooled, kBytes, nullptr));
  ASSERT_CUDA(driver().stream_synchronize(nullptr));
  expect_order(static_cast<std::byte*>(test::pointer_to(pooled)));
  EXPECT_CUDA(program().memory_free_async(pooled, nullptr));
  DevicePointer managed = 0;
  ASSERT_CUDA(driver().memory_allocate_managed(&managed, kBytes, cuda::kManagedAttachGlobal));
  expect_order(static_cast<std::byte*>(test::pointer_to(managed)));
  EXPECT_CUDA(driver().memory_free(managed));
}

TEST_F(ProgramOrderTest, flags_that_the_program_changes) {
  constexpr unsigned kBlockingSync = 4;
  expect_order(buffer_);
  ASSERT_CUDA(driver().primary_context_set_flags(0, kBlockingSync));  // as cudaSetDeviceFlags does
  expect_order(buffer_);
  EXPECT_TRUE(is_flagged_soon());
  unsigned flags = 0;
  int is_active = 0;
  ASSERT_CUDA(driver().primary_context_get_state(0, &flags, &is_active));
  EXPECT_EQ(kBlockingSync | cuda::kContextSyncMemoryOperations, flags);
}

// Memory that is kept in order: whoever calls with it again asks the driver nothing.
TEST_F(ProgramOrderTest, kept_memory_needs_no_question) {
  const auto info = classify(buffer_);
  ASSERT_TRUE(info.runtime->keep_in_order(info));
  for (const unsigned seed : {1U, 2U}) {
    ASSERT_CUDA(driver().primary_context_set_flags(0, 0));
    const auto data = pattern(kBytes, seed);
    ASSERT_CUDA(program().copy_to_device(at(buffer_), data.data(), kBytes));
    EXPECT_EQ(data, contents(buffer_, kBytes));
    ASSERT_CUDA(program().fill(at(buffer_) + kBytes / 2, 7, kBytes / 2));
    EXPECT_EQ(7, contents(buffer_, kBytes).back());
  }
  EXPECT_FALSE(is_flagged());
}

// Its block stays when it goes to somebody else.
TEST_F(ProgramOrderTest, pooled_memory_is_not_kept) {
  DevicePointer pooled = 0;
  ASSERT_CUDA(program().memory_allocate_async(&pooled, kBytes, nullptr));
  const auto info = classify(test::pointer_to(pooled));
  EXPECT_FALSE(info.runtime->keep_in_order(info));
  EXPECT_CUDA(program().memory_free_async(pooled, nullptr));
}

TEST_F(ProgramOrderTest, a_context_of_the_programs_own) {
  Context own = nullptr;
  ASSERT_CUDA(program().context_create(&own, 0, 0));
  DevicePointer memory = 0;
  ASSERT_CUDA(driver().memory_allocate(&memory, kBytes));
  auto* const bytes = static_cast<std::byte*>(test::pointer_to(memory));
  const auto data = pattern(kBytes, 5);
  ASSERT_CUDA(program().copy_to_device(memory, data.data(), kBytes));
  EXPECT_EQ(data, in_call(bytes));
  // The same while another context is current: the copy was issued in the buffer's.
  ASSERT_CUDA(driver().context_set_flags(0));
  const auto more = pattern(kBytes, 6);
  ASSERT_CUDA(program().copy_to_device(memory, more.data(), kBytes));
  ASSERT_CUDA(driver().context_push(primary_));
  EXPECT_EQ(more, in_call(bytes));
  Context popped = nullptr;
  ASSERT_CUDA(driver().context_pop(&popped));
  EXPECT_EQ(primary_, popped) << "the program's current context has changed";
  ASSERT_CUDA(driver().context_get_current(&popped));
  EXPECT_EQ(own, popped);
  EXPECT_CUDA(driver().memory_free(memory));
  EXPECT_CUDA(program().context_destroy(own));
}

TEST_F(ProgramOrderTest, another_device_current) {
  if (cuda_runtime().device_count() < 2) GTEST_SKIP() << "one device";
  Context second = nullptr;
  Context popped = nullptr;
  ASSERT_CUDA(driver().primary_context_retain(&second, 1));
  ASSERT_CUDA(driver().primary_context_set_flags(1, 0));
  ASSERT_CUDA(driver().context_push(second));
  const auto data = pattern(kBytes, 8);
  ASSERT_CUDA(program().copy_to_device(at(buffer_), data.data(), kBytes));  // issued in the second
  ASSERT_CUDA(driver().context_pop(&popped));
  EXPECT_EQ(data, in_call(buffer_));
  EXPECT_TRUE(is_flagged_soon(1));
  EXPECT_CUDA(driver().primary_context_release(1));
}

TEST_F(ProgramOrderTest, a_thread_without_a_context) {
  const auto data = pattern(kBytes, 9);
  ASSERT_CUDA(program().copy_to_device(at(buffer_), data.data(), kBytes));
  std::thread([&] {
    EXPECT_EQ(data, in_call(buffer_));
    Context current = nullptr;
    EXPECT_CUDA(driver().context_get_current(&current));
    EXPECT_EQ(nullptr, current);
  }).join();
}

TEST_F(ProgramOrderTest, a_capture_on_another_thread_goes_on) {
  expect_order(buffer_);
  Stream stream = nullptr;
  ASSERT_CUDA(driver().stream_create(&stream, cuda::kStreamNonBlocking));
  ASSERT_CUDA(program().capture_begin(stream, CaptureMode::global));
  std::thread([&] {
    (void)classify_argument(buffer_);
    order_behind_program();
  }).join();
  void* graph = nullptr;
  EXPECT_CUDA(program().capture_end(stream, &graph));
  EXPECT_CUDA(program().graph_destroy(graph));
  EXPECT_CUDA(program().stream_destroy(stream));
}

// The flag cannot be set while a kernel runs, which may be one that waits for this very call.
TEST_F(ProgramOrderTest, a_kernel_that_waits_for_the_first_call) {
  if (fake_cuda() == nullptr) GTEST_SKIP() << "needs a kernel that a test ends";
  const auto data = pattern(kBytes, 10);
  fake_cuda()->begin_kernel();
  ASSERT_CUDA(program().copy_to_device(at(buffer_), data.data(), kBytes));
  EXPECT_EQ(data, in_call(buffer_));
  expect_order(buffer_);
  EXPECT_FALSE(is_flagged());
  fake_cuda()->end_kernel();
  EXPECT_TRUE(is_flagged_soon());
  expect_order(buffer_);
}

TEST_F(ProgramOrderTest, a_device_that_is_not_in_use_yet_gets_the_flag) {
  if (cuda_runtime().device_count() < 2) GTEST_SKIP() << "one device";
  (void)classify_argument(buffer_);
  EXPECT_TRUE(is_flagged_soon(1));
}

// Last: the runtime remembers that this driver takes no flag.
TEST_F(ProgramOrderTest, without_the_flag_default_streams_are_awaited) {
  if (fake_cuda() == nullptr) GTEST_SKIP() << "needs such a driver";
  setenv("FAKE_CUDA_NO_FLAG", "1", 1);
  expect_order(buffer_);
  EXPECT_FALSE(is_flagged());
  expect_order(buffer_);
  unsetenv("FAKE_CUDA_NO_FLAG");
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) { return accord::test::run_cuda_tests(argc, argv); }
