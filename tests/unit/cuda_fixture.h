// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What most tests of cuda_runtime_test start from.
#pragma once

#include <memory>
#include <vector>

#include "cuda_test.h"

namespace accord::test {

#define ASSERT_CUDA(expression) ASSERT_EQ(::accord::device::cuda::Result::success, (expression))
#define EXPECT_CUDA(expression) EXPECT_EQ(::accord::device::cuda::Result::success, (expression))

// A program that has chosen device 0, as after cudaSetDevice.
class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
    ASSERT_CUDA(driver().primary_context_retain(&primary_, 0));
    ASSERT_CUDA(driver().context_push(primary_));
  }
  void TearDown() override {
    if (primary_ == nullptr) return;
    Context popped = nullptr;
    EXPECT_CUDA(driver().context_get_current(&popped));
    EXPECT_EQ(primary_, popped) << "the current context has changed";
    for (DevicePointer address : allocated_) EXPECT_CUDA(driver().memory_free(address));
    EXPECT_CUDA(driver().context_pop(&popped));
    EXPECT_CUDA(driver().primary_context_release(0));
  }

  std::byte* allocate(std::size_t size_bytes) {
    DevicePointer address = 0;
    EXPECT_CUDA(driver().memory_allocate(&address, size_bytes));
    allocated_.push_back(address);
    return static_cast<std::byte*>(pointer_to(address));
  }
  device::PointerInfo info(const void* pointer) {
    device::PointerInfo result;
    return runtime_.classify(pointer, result) ? result : device::PointerInfo{};
  }

  device::DeviceRuntime& runtime_ = cuda_runtime();
  Context primary_ = nullptr;
  std::vector<DevicePointer> allocated_;
};

}  // namespace accord::test
