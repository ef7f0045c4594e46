// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies of the CUDA runtime that follow a layout: part of cuda_runtime_test. Over the fake driver
// it tests the launches, on a GPU the kernels too.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "cuda_mapped.h"
#include "cuda_program.h"
#include "cuda_test.h"
#include "device/cuda/modules.h"
#include "device/cuda/pack.h"
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
    // In halves, which may lie in different allocations.
    auto* const halves = static_cast<std::byte*>(packed);
    const std::size_t half = wanted.size() / 2;
    auto found = test::contents(halves, half);
    for (const unsigned char byte : test::contents(halves + half, wanted.size() - half))
      found.push_back(byte);
    EXPECT_EQ(wanted, found);
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

// Engines are for what crosses to the host, and for what is short.
TEST_F(CudaPack, long_rows_go_by_a_kernel_within_the_device) {
  constexpr std::size_t kPackedBytes = std::size_t{256} << 10;
  const Runs rows = {{0, 4096, 0}};
  const std::size_t elements = kPackedBytes / 4096;
  for (const auto& [kind, kernels] :
       {std::pair{MemoryKind::device, 1U}, {MemoryKind::pinned, 0U}}) {
    void* packed = nullptr;
    ASSERT_OK(runtime_.allocate(0, kind, kPackedBytes, packed));
    EXPECT_EQ(kernels, pack(rows, 8192, elements, packed));
    EXPECT_EQ(0U, pack(rows, 8192, elements / 16, packed));
    EXPECT_OK(runtime_.free(packed));
  }
}

// A kernel must be able to reach every byte, not only the first.
TEST_F(CudaPack, host_memory_that_is_page_locked_in_part_is_out_of_reach) {
  constexpr std::size_t kHalfBytes = 300 * 8 / 2;  // of what squares() packs
  constexpr std::size_t kPageBytes = 4096;
  void* pages =
      mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, pages);
  std::byte* const second = static_cast<std::byte*>(pages) + kPageBytes;
  std::byte* const packed = second - kHalfBytes;
  ASSERT_CUDA(driver().host_memory_register(pages, kPageBytes, cuda::kHostRegisterPortable));
  EXPECT_EQ(0U, pack(squares(), 300 * 300 * 8, 1, packed));
  ASSERT_CUDA(driver().host_memory_register(second, kPageBytes, cuda::kHostRegisterPortable));
  EXPECT_EQ(1U, pack(squares(), 300 * 300 * 8, 1, packed)) << "two parts, one behind the other";
  for (void* page : {pages, static_cast<void*>(second)})
    EXPECT_CUDA(driver().host_memory_unregister(page));
  munmap(pages, 2 * kPageBytes);
}

TEST_F(CudaPack, mappings_side_by_side_are_reached_if_each_of_them_is) {
  constexpr std::size_t kHalfBytes = 300 * 8 / 2;
  const test::Physical first(test::Export::never), second(test::Export::never);
  test::Reserved range(2);
  range.map(0, first);
  std::byte* const packed = range.map(1, second) - kHalfBytes;
  EXPECT_EQ(1U, pack(squares(), 300 * 300 * 8, 1, packed));
  range.unmap(1);
  range.map_without_access(1, second);
  const cuda::ByteRange both{packed, packed + 2 * kHalfBytes - 1};
  {
    cuda::ContextScope scope(driver());
    EXPECT_CODE(unsupported, cuda::enter_for_kernel(driver(), 0, {&both, 1}, "test", scope));
  }
  range.unmap(1);
  {
    cuda::ContextScope scope(driver());
    EXPECT_FALSE(cuda::enter_for_kernel(driver(), 0, {&both, 1}, "test", scope).ok()) << "nothing";
  }
  range.unmap(0);
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
