// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of the virtual memory API (cuMemCreate, as PyTorch's expandable segments have it) and of
// pools (cudaMallocAsync): what it is, and that another process opens it where it was made to be
// exported. On a GPU or over the fake driver, as cuda_runtime_test.cpp, whose main this shares.
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "cuda_mapped.h"
#include "cuda_test.h"

namespace accord::test {
namespace {

using device::DeviceRuntime;
using device::ExportedMemory;
using device::MemoryKind;
using device::PointerInfo;

// A program that has chosen device 0.
class CudaShare : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda::driver() == nullptr || runtime_.device_count() == 0)
      GTEST_SKIP() << "no CUDA device";
    ASSERT_CUDA(driver().primary_context_retain(&primary_, 0));
    ASSERT_CUDA(driver().context_push(primary_));
    ASSERT_CUDA(driver().stream_create(&stream_, 0));
  }
  void TearDown() override {
    if (primary_ == nullptr) return;
    Context popped = nullptr;
    EXPECT_CUDA(program().stream_destroy(stream_));
    EXPECT_CUDA(driver().context_pop(&popped));
    EXPECT_EQ(primary_, popped);
    EXPECT_CUDA(driver().primary_context_release(0));
  }

  PointerInfo info(const void* pointer) {
    PointerInfo result;
    return runtime_.classify(pointer, result) ? result : PointerInfo{};
  }

  // Other processes read it, write to it, and add it to memory of their own.
  void share(std::byte* memory) {
    const auto data = pattern(kSharedBytes, 12);
    ASSERT_OK(copy_one(memory, data.data(), kSharedBytes));
    ExportedMemory exported;
    ASSERT_OK(runtime_.export_memory(memory + kSharedOffset, exported));
    EXPECT_EQ(kSharedOffset, exported.offset_bytes);
    ASSERT_LE(0, exported.file_descriptor);
    EXPECT_NE(0, fcntl(exported.file_descriptor, F_GETFD) & FD_CLOEXEC);
    ASSERT_EQ(0, fcntl(exported.file_descriptor, F_SETFD, 0));
    for (const char* child : {"--child=reducer", "--child=importer"}) {
      EXPECT_EQ(0, run_child({child, text_of(exported), std::to_string(exported.offset_bytes),
                              std::to_string(exported.file_descriptor)}))
          << child;
    }
    close(exported.file_descriptor);
    EXPECT_EQ(pattern(1000, 13), contents(memory + kSharedOffset, 1000)) << "what the child wrote";
    // Without its descriptor a handle opens nothing.
    exported.file_descriptor = -1;
    void* opened = nullptr;
    EXPECT_CODE(invalid_argument, runtime_.open_memory(0, exported, opened));
    EXPECT_EQ(nullptr, opened);
  }

  DeviceRuntime& runtime_ = cuda_runtime();
  Context primary_ = nullptr;
  Stream stream_ = nullptr;
};

// Not the reserved range, of which other parts hold other memory or none.
TEST_F(CudaShare, MappedMemoryIsWhatIsMapped) {
  const Physical first(Export::never), second(Export::never);
  Reserved range(3);
  std::byte* const a = range.map(0, first);
  std::byte* const b = range.map(1, second);
  for (int round = 0; round < 2; ++round) {
    const PointerInfo of_a = info(a + granule() - 1);
    const PointerInfo of_b = info(b);
    EXPECT_EQ(MemoryKind::device, of_a.kind);
    EXPECT_EQ(a, of_a.base);
    EXPECT_EQ(b, of_b.base);
    EXPECT_EQ(granule(), of_a.size_bytes);
    EXPECT_EQ(granule(), of_b.size_bytes);
    EXPECT_NE(0u, of_a.buffer_id);
    EXPECT_NE(of_a.buffer_id, of_b.buffer_id);
  }
  range.unmap(0);
  range.unmap(1);
  EXPECT_EQ(MemoryKind::host, info(a).kind);
}

TEST_F(CudaShare, OtherMemoryAtTheSameAddressIsAnotherAllocation) {
  const Physical first(Export::never), second(Export::never);
  Reserved range(1);
  std::byte* const memory = range.map(0, first);
  const std::uint64_t before = info(memory).buffer_id;
  EXPECT_EQ(before, info(memory + 1).buffer_id);
  range.unmap(0);
  ASSERT_EQ(memory, range.map(0, second));
  EXPECT_NE(before, info(memory).buffer_id);
  range.unmap(0);
}

TEST_F(CudaShare, MappedMemoryIsOpenedByOtherProcesses) {
  const Physical physical(Export::by_descriptor);
  Reserved range(2);
  share(range.map(1, physical));
  range.unmap(1);
}

TEST_F(CudaShare, MemoryThatWasNotMadeForItIsNotExported) {
  const Physical physical(Export::never);
  Reserved range(1);
  ExportedMemory exported;
  EXPECT_CODE(unsupported, runtime_.export_memory(range.map(0, physical), exported));
  EXPECT_EQ(-1, exported.file_descriptor);
  range.unmap(0);
  Pool pool = nullptr;
  DevicePointer address = 0;
  const PoolProperties properties;
  ASSERT_CUDA(program().pool_create(&pool, &properties));
  ASSERT_CUDA(program().memory_allocate_from_pool(&address, 5000, pool, stream_));
  ASSERT_CUDA(driver().stream_synchronize(stream_));
  EXPECT_CODE(unsupported, runtime_.export_memory(pointer_to(address), exported));
  EXPECT_EQ(-1, exported.file_descriptor);
  EXPECT_CUDA(program().memory_free_async(address, stream_));
  EXPECT_CUDA(driver().stream_synchronize(stream_));
  EXPECT_CUDA(driver().pool_destroy(pool));
}

TEST_F(CudaShare, MemoryOfAPoolIsOpenedByOtherProcesses) {
  Pool pool = nullptr;
  PoolProperties properties;
  properties.handle_types = handle_types(Export::by_descriptor);
  ASSERT_CUDA(program().pool_create(&pool, &properties));
  DevicePointer before = 0;
  DevicePointer address = 0;
  ASSERT_CUDA(program().memory_allocate_from_pool(&before, 1000, pool, stream_));
  ASSERT_CUDA(program().memory_allocate_from_pool(&address, kSharedBytes, pool, stream_));
  ASSERT_CUDA(driver().stream_synchronize(stream_));
  const PointerInfo found = info(pointer_to(address + 1));
  EXPECT_EQ(pointer_to(address), found.base);
  EXPECT_LE(kSharedBytes, found.size_bytes);
  share(static_cast<std::byte*>(pointer_to(address)));
  for (const DevicePointer one : {before, address})
    EXPECT_CUDA(program().memory_free_async(one, stream_));
  EXPECT_CUDA(driver().stream_synchronize(stream_));
  EXPECT_CUDA(driver().pool_destroy(pool));
}

}  // namespace
}  // namespace accord::test
