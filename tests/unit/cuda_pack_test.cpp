// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies of the CUDA runtime that follow a layout: part of cuda_runtime_test. Over the fake driver
// it tests the launches, on a GPU the kernels too.
#include "device/cuda_pack.h"

#include <gtest/gtest.h>

#include <memory>

#include "cuda_program.h"
#include "cuda_test.h"
#include "pack_check.h"

namespace accord::device {
namespace {

using cuda::Context;
using cuda::Result;
using test::driver;
using Runs = std::vector<device::Run>;  // Run is a name of testing::Test

class CudaPack : public testing::Test {
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

  // Packs numbers 0, 2, 4, ... or, irregular, 0, 1, 4, 9, ... of device memory to `packed`, which
  // the caller reads; returns how many kernels that took.
  std::uint64_t pack(const Runs& runs, std::ptrdiff_t extent_bytes, std::size_t elements,
                     void* packed) {
    void* memory = nullptr;
    EXPECT_OK(runtime_.allocate(0, MemoryKind::device, kBytes, memory));
    const auto data = test::pattern(kBytes, 7);
    EXPECT_OK(test::copy_one(memory, data.data(), kBytes));
    const auto type = std::make_shared<const Typemap>(runs, extent_bytes);
    const std::uint64_t before = cuda::pack_launches();
    CopyBatch batch;
    batch.append({type, static_cast<std::byte*>(memory), static_cast<std::byte*>(packed), 0,
                  type->size_bytes() * elements, LayoutCopy::Direction::pack});
    EXPECT_OK(runtime_.copy_batch(0, batch));
    const std::uint64_t after = cuda::pack_launches();
    std::vector<unsigned char> wanted;
    for (std::size_t element = 0; element < elements; ++element) {
      for (const device::Run& run : runs) {
        const std::ptrdiff_t at =
            static_cast<std::ptrdiff_t>(element) * extent_bytes + run.offset_bytes;
        wanted.insert(wanted.end(), data.begin() + at,
                      data.begin() + at + static_cast<std::ptrdiff_t>(run.length_bytes));
      }
    }
    EXPECT_EQ(wanted, test::contents(packed, wanted.size()));
    EXPECT_OK(runtime_.free(memory));
    return after - before;
  }

  static constexpr std::size_t kBytes = 1 << 20;
  DeviceRuntime& runtime_ = cuda_runtime();
  Context primary_ = nullptr;
};

Runs squares() {
  Runs runs;
  for (std::ptrdiff_t i = 0; i < 300; ++i) runs.push_back({i * i * 8, 8, 0});
  return runs;
}

TEST_F(CudaPack, random_layouts) {
  test::Layouts(runtime_, MemoryKind::pinned).check(150, 11);
  test::Layouts(runtime_, MemoryKind::device).check(150, 12);
}

TEST_F(CudaPack, short_rows_go_by_one_kernel) {
  std::vector<unsigned char> unknown(80'000);
  void* pinned = nullptr;
  ASSERT_OK(runtime_.allocate(0, MemoryKind::pinned, 80'000, pinned));
  EXPECT_EQ(1U, pack({{0, 8, 0}}, 16, 10'000, pinned));
  EXPECT_EQ(1U, pack(squares(), 300 * 300 * 8, 1, pinned));
  EXPECT_EQ(0U, pack({{0, 8, 0}}, 16, 2, pinned)) << "two rows";
  // Memory that the driver does not know is out of a kernel's reach.
  EXPECT_EQ(0U, pack({{0, 8, 0}}, 16, 10'000, unknown.data()));
  EXPECT_OK(runtime_.free(pinned));
}

// The runs of types that are gone make room for others: many types do not use up the memory.
TEST_F(CudaPack, types_come_and_go) {
  void* packed = nullptr;
  ASSERT_OK(runtime_.allocate(0, MemoryKind::device, 100'000, packed));
  for (std::ptrdiff_t round = 0; round < 20; ++round) {
    Runs runs;
    for (std::ptrdiff_t i = 0; i < 100'000; ++i)
      runs.push_back({i * 10 + (i % 7 == round % 7 ? 1 : 0), 1, 0});
    EXPECT_EQ(1U, pack(runs, kBytes, 1, packed));
  }
  EXPECT_OK(runtime_.free(packed));
}

TEST_F(CudaPack, contexts_come_and_go) {
  Context popped = nullptr;
  ASSERT_EQ(Result::success, driver().context_pop(&popped));
  for (int round = 0; round < 3; ++round) {
    Context context = nullptr;
    ASSERT_EQ(Result::success, test::program().context_create(&context, 0, 0));
    void* packed = nullptr;
    ASSERT_OK(runtime_.allocate(0, MemoryKind::device, 80'000, packed));
    EXPECT_EQ(1U, pack(squares(), 300 * 300 * 8, 1, packed));
    EXPECT_OK(runtime_.free(packed));
    EXPECT_EQ(Result::success, test::program().context_destroy(context));
  }
  ASSERT_EQ(Result::success, driver().context_push(primary_));
}

}  // namespace
}  // namespace accord::device
