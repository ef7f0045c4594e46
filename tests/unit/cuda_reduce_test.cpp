// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of the CUDA runtime: part of cuda_runtime_test, and skipped where there is nothing to
// run the kernels. Over the fake driver they test the launches, not the kernels.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "cuda_program.h"
#include "cuda_test.h"
#include "device/cuda/driver.h"
#include "device/device_runtime.h"
#include "reduction_check.h"
#include "support.h"

namespace accord::device {
namespace {

using cuda::Context;
using cuda::DevicePointer;
using cuda::Result;
using test::driver;
using test::program;
using test::Slots;

class CudaReduce : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::driver() == nullptr) GTEST_SKIP() << "no NVIDIA driver";
    if (runtime_.device_count() == 0) GTEST_SKIP() << "no CUDA device";
    ASSERT_EQ(Result::success, driver().primary_context_retain(&primary_, 0));
    ASSERT_EQ(Result::success, driver().context_push(primary_));
    if (!runtime_.can_reduce(ReduceOp::sum, Element::int32)) GTEST_SKIP() << "no kernels";
  }
  void TearDown() override {
    if (primary_ == nullptr) return;
    Context popped = nullptr;
    EXPECT_EQ(Result::success, driver().context_pop(&popped));
    EXPECT_EQ(primary_, popped) << "the current context has changed";
    EXPECT_EQ(Result::success, driver().primary_context_release(0));
  }

  // dst[i] = near[i] ^ far[i]
  void expect_exclusive_or(Slots& near, Slots& far) {
    near.upload(0);
    far.upload(0);
    const void* const sources[] = {near.at(0), far.at(0)};
    EXPECT_OK(test::reduce(runtime_, {near.at(0), sources, 1000, ReduceOp::bxor, Element::uint8}));
    const auto seen = near.download(0);
    for (std::size_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(near.contents(0)[i] ^ far.contents(0)[i], seen[i]) << i;
    }
  }

  DeviceRuntime& runtime_ = cuda_runtime();
  Context primary_ = nullptr;
};

using test::Half;
using test::ValueAndIndex;
#define ACCORD_ELEMENT_TEST(element, ...) \
  TEST_F(CudaReduce, element) { test::check_element<__VA_ARGS__>(runtime_, Element::element); }
ACCORD_TEST_ELEMENTS(ACCORD_ELEMENT_TEST)
#undef ACCORD_ELEMENT_TEST

TEST_F(CudaReduce, large) { test::check_large(runtime_); }
TEST_F(CudaReduce, many_sources) { test::check_many_sources(runtime_); }
TEST_F(CudaReduce, kinds_of_memory) { test::check_kinds_of_memory(runtime_); }
TEST_F(CudaReduce, errors) { test::check_errors(runtime_); }

TEST_F(CudaReduce, memory_of_another_device) {
  if (runtime_.device_count() < 2) GTEST_SKIP() << "one device only";
  int access = 0;
  ASSERT_EQ(Result::success, driver().device_can_access_peer(&access, 0, 1));
  if (access == 0) GTEST_SKIP() << "devices that cannot address each other";
  Slots near(runtime_, 1, 1000);
  Slots far(runtime_, 1, 1000, MemoryKind::device, 1);
  expect_exclusive_or(near, far);
  expect_exclusive_or(near, far);  // with access enabled already
}

TEST_F(CudaReduce, memory_of_another_process) {
  void* memory = nullptr;
  ASSERT_OK(runtime_.allocate(0, MemoryKind::device, test::kSharedBytes, memory));
  const auto data = test::pattern(test::kSharedBytes, 12);
  ASSERT_OK(test::copy_one(memory, data.data(), data.size()));
  ExportedMemory exported;
  ASSERT_OK(
      runtime_.export_memory(static_cast<std::byte*>(memory) + test::kSharedOffset, exported));
  EXPECT_EQ(0, test::run_child({"--child=reducer", test::text_of(exported),
                                std::to_string(exported.offset_bytes)}));
  EXPECT_OK(runtime_.free(memory));
}

// A kernel of one context cannot address the memory of another one of the device: said, not tried.
TEST_F(CudaReduce, memory_of_another_context) {
  Context second = nullptr;
  ASSERT_EQ(Result::success, program().context_create(&second, 0, 0));
  {
    auto far = std::make_unique<Slots>(runtime_, 1, 1000);
    Context popped = nullptr;
    ASSERT_EQ(Result::success, driver().context_pop(&popped));
    Slots near(runtime_, 1, 1000);
    far->upload(0);
    const void* const both[] = {near.at(0), far->at(0)};
    CopyTicket ticket;
    EXPECT_CODE(
        unsupported,
        runtime_.reduce_begin(0, {near.at(0), both, 1000, ReduceOp::bxor, Element::uint8}, ticket));
    const void* const alone[] = {far->at(0), far->at(0)};
    EXPECT_OK(test::reduce(runtime_, {far->at(0), alone, 1000, ReduceOp::bxor, Element::uint8}));
    EXPECT_EQ(0, far->download(0)[999]) << "in the context of the buffer";
  }
  ASSERT_EQ(Result::success, driver().context_push(second));
  EXPECT_EQ(Result::success, program().context_destroy(second));
}

TEST_F(CudaReduce, threads_without_a_context_reduce_and_stay_without) {
  std::vector<std::thread> threads;
  Slots near(runtime_, 8, 5000);
  Slots far(runtime_, 8, 5000);
  for (std::size_t i = 0; i < 8; ++i) {
    near.upload(i);
    far.upload(i);
    threads.emplace_back([&, i] {
      const void* const sources[] = {near.at(i), far.at(i)};
      for (int round = 0; round < 21; ++round) {
        EXPECT_OK(
            test::reduce(runtime_, {near.at(i), sources, 5000, ReduceOp::bxor, Element::uint8}));
      }
      Context current = primary_;
      EXPECT_EQ(Result::success, driver().context_get_current(&current));
      EXPECT_EQ(nullptr, current);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(near.contents(i)[4999] ^ far.contents(i)[4999], near.download(i)[4999]) << i;
  }
}

TEST_F(CudaReduce, captures_of_the_program_survive) {
  Slots near(runtime_, 1, 1000);
  Slots far(runtime_, 1, 1000);
  near.upload(0);
  far.upload(0);
  cuda::Stream stream = nullptr;
  ASSERT_EQ(Result::success, driver().stream_create(&stream, 0));
  ASSERT_EQ(Result::success, program().capture_begin(stream, cuda::CaptureMode::global));
  expect_exclusive_or(near, far);
  constexpr int kActive = 1;
  int status = 0;
  EXPECT_EQ(Result::success, program().capture_status(stream, &status));
  EXPECT_EQ(kActive, status);
  void* graph = nullptr;
  EXPECT_EQ(Result::success, program().capture_end(stream, &graph));
  EXPECT_EQ(Result::success, program().graph_destroy(graph));
  EXPECT_EQ(Result::success, program().stream_destroy(stream));
}

TEST_F(CudaReduce, the_driver_may_refuse_the_kernels) {
  EXPECT_EQ(0, test::run_child({"--child=no_kernels"}));
}

// The modules of a context die with it.
TEST_F(CudaReduce, contexts_come_and_go) {
  for (int round = 0; round < 3; ++round) {
    Context context = nullptr;
    ASSERT_EQ(Result::success, program().context_create(&context, 0, 0));
    {
      Slots near(runtime_, 1, 1000);
      Slots far(runtime_, 1, 1000);
      expect_exclusive_or(near, far);
    }
    EXPECT_EQ(Result::success, program().context_destroy(context));
  }
}

}  // namespace
}  // namespace accord::device
