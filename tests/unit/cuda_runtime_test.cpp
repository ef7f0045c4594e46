// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The CUDA runtime against a program that uses the driver as programs do. Runs on a GPU, or over
// the fake driver (see cuda_program.h); without either it exits with 77. Cases that need a process
// of their own are children: this program again with --child=NAME, since CUDA does not survive a
// fork.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "cuda_fixture.h"
#include "cuda_program.h"
#include "cuda_test.h"
#include "device/cuda/driver.h"
#include "device/device_runtime.h"
#include "device/registry.h"
#include "support.h"

namespace accord::device {
namespace {

using cuda::Context;
using cuda::DevicePointer;
using cuda::Result;
using test::contents;
using test::copy_one;
using test::Cuda;
using test::driver;
using test::kSharedBytes;
using test::kSharedOffset;
using test::pattern;
using test::pointer_to;
using test::program;
using test::run_child;
using test::text_of;

TEST_F(Cuda, asking_does_not_initialise) { EXPECT_EQ(0, run_child({"--child=before_init"})); }

TEST_F(Cuda, kinds) {
  std::byte* memory = allocate(10000);
  const PointerInfo device_info = info(memory + 9999);
  EXPECT_EQ(MemoryKind::device, device_info.kind);
  EXPECT_EQ(&runtime_, device_info.runtime);
  EXPECT_EQ(0, device_info.device);
  EXPECT_EQ(memory, device_info.base);
  EXPECT_EQ(10000U, device_info.size_bytes);
  EXPECT_NE(0U, device_info.buffer_id);
  EXPECT_TRUE(runtime_.must_stage(memory));

  DevicePointer managed = 0;
  ASSERT_CUDA(driver().memory_allocate_managed(&managed, 10000, cuda::kManagedAttachGlobal));
  EXPECT_EQ(MemoryKind::managed, info(pointer_to(managed + 9999)).kind);
  EXPECT_TRUE(runtime_.must_stage(pointer_to(managed + 1)));
  // Touched by the CPU, its pages are on the host; it is managed all the same.
  std::memset(pointer_to(managed), 1, 10000);
  EXPECT_EQ(MemoryKind::managed, info(pointer_to(managed)).kind);
  EXPECT_TRUE(runtime_.must_stage(pointer_to(managed)));
  EXPECT_CUDA(driver().memory_free(managed));

  void* pinned = nullptr;
  ASSERT_CUDA(driver().host_memory_allocate(&pinned, 10000, cuda::kHostAllocatePortable));
  EXPECT_EQ(MemoryKind::pinned, info(static_cast<char*>(pinned) + 9999).kind);
  EXPECT_FALSE(runtime_.must_stage(pinned));
  EXPECT_CUDA(driver().host_memory_free(pinned));

  int local = 0;
  static int global = 0;
  const auto heap = std::make_unique<char[]>(100);
  const auto mapped = std::make_unique_for_overwrite<char[]>(std::size_t{64} << 20);
  for (const void* pointer :
       {static_cast<const void*>(&local), static_cast<const void*>(&global),
        static_cast<const void*>(heap.get()), static_cast<const void*>(mapped.get()),
        static_cast<const void*>(nullptr), reinterpret_cast<const void*>(~std::uintptr_t{0})}) {
    EXPECT_EQ(MemoryKind::host, info(pointer).kind) << pointer;
    EXPECT_FALSE(runtime_.must_stage(pointer)) << pointer;
    EXPECT_EQ(MemoryKind::host, classify(pointer).kind) << pointer;
    EXPECT_FALSE(must_stage(pointer)) << pointer;
  }
  EXPECT_EQ(MemoryKind::device, classify(memory).kind);
  EXPECT_TRUE(must_stage(memory));
}

TEST_F(Cuda, freed_memory_is_host_and_new_memory_has_a_new_id) {
  std::byte* memory = allocate(std::size_t{4} << 20);
  const std::uint64_t id = info(memory).buffer_id;
  EXPECT_CUDA(driver().memory_free(cuda::address_of(memory)));
  allocated_.clear();
  EXPECT_EQ(MemoryKind::host, info(memory).kind);
  EXPECT_NE(id, info(allocate(std::size_t{4} << 20)).buffer_id);
}

TEST_F(Cuda, memory_of_another_context) {
  Context second = nullptr;
  ASSERT_CUDA(program().context_create(&second, 0, 0));
  DevicePointer address = 0;
  ASSERT_CUDA(driver().memory_allocate(&address, 5000));
  Context popped = nullptr;
  ASSERT_CUDA(driver().context_pop(&popped));
  const auto data = pattern(5000, 5);
  EXPECT_EQ(MemoryKind::device, info(pointer_to(address)).kind);
  EXPECT_OK(copy_one(pointer_to(address), data.data(), 5000));  // the primary context is current
  std::thread([&] { EXPECT_EQ(data, contents(pointer_to(address), 5000)); }).join();
  ASSERT_CUDA(driver().context_push(second));
  EXPECT_EQ(data, contents(pointer_to(address), 5000));
  Context current = nullptr;
  EXPECT_CUDA(driver().context_get_current(&current));
  EXPECT_EQ(second, current);
  EXPECT_CUDA(driver().memory_free(address));
  EXPECT_CUDA(program().context_destroy(second));
}

// The streams that were kept for a context die with it; a new context may have the same handle.
TEST_F(Cuda, contexts_come_and_go) {
  for (int round = 0; round < 3; ++round) {
    Context context = nullptr;
    ASSERT_CUDA(program().context_create(&context, 0, 0));
    DevicePointer address = 0;
    ASSERT_CUDA(driver().memory_allocate(&address, 5000));
    const auto data = pattern(5000, 6);
    EXPECT_OK(copy_one(pointer_to(address), data.data(), 5000));
    EXPECT_EQ(data, contents(pointer_to(address), 5000));
    EXPECT_CUDA(program().context_destroy(context));
  }
}

TEST_F(Cuda, a_reset_device_works_again) { EXPECT_EQ(0, run_child({"--child=reset"})); }

TEST_F(Cuda, other_devices_keep_the_current_one) {
  if (runtime_.device_count() < 2) GTEST_SKIP() << "one device only";
  void* pointer = nullptr;
  ASSERT_OK(runtime_.allocate(1, MemoryKind::device, 5000, pointer));
  EXPECT_EQ(1, info(pointer).device);
  const auto data = pattern(5000, 7);
  EXPECT_OK(copy_one(pointer, data.data(), 5000, 1));
  std::vector<unsigned char> seen(5000);
  EXPECT_OK(copy_one(seen.data(), pointer, 5000, 1));
  EXPECT_EQ(data, seen);
  std::byte* near = allocate(5000);
  EXPECT_OK(copy_one(near, pointer, 5000, 1));
  EXPECT_EQ(data, contents(near, 5000));
  EXPECT_OK(runtime_.free(pointer));
}

TEST_F(Cuda, memory_of_a_pool) {
  cuda::Stream stream = nullptr;
  ASSERT_CUDA(driver().stream_create(&stream, 0));
  DevicePointer address = 0;
  ASSERT_CUDA(program().memory_allocate_async(&address, 5000, stream));
  ASSERT_CUDA(driver().stream_synchronize(stream));
  EXPECT_EQ(MemoryKind::device, info(pointer_to(address + 4999)).kind);
  EXPECT_EQ(0, info(pointer_to(address)).device);
  EXPECT_TRUE(runtime_.must_stage(pointer_to(address)));
  const auto data = pattern(5000, 8);
  EXPECT_OK(copy_one(pointer_to(address), data.data(), 5000));
  EXPECT_EQ(data, contents(pointer_to(address), 5000));
  std::thread([&] { EXPECT_EQ(data, contents(pointer_to(address), 5000)); }).join();
  ExportedMemory exported;
  EXPECT_CODE(unsupported, runtime_.export_memory(pointer_to(address), exported));
  EXPECT_CUDA(program().memory_free_async(address, stream));
  EXPECT_CUDA(driver().stream_synchronize(stream));
  EXPECT_CUDA(program().stream_destroy(stream));
}

TEST_F(Cuda, captures_of_the_program_survive) {
  std::byte* memory = allocate(1000);
  const auto data = pattern(1000, 9);
  cuda::Stream stream = nullptr;
  ASSERT_CUDA(driver().stream_create(&stream, 0));
  ASSERT_CUDA(program().capture_begin(stream, cuda::CaptureMode::global));
  EXPECT_OK(copy_one(memory, data.data(), 1000));
  const Copy one{memory, data.data(), 1000};
  CopyTicket ticket;
  bool done = false;
  EXPECT_OK(runtime_.copy_begin(0, {&one, 1}, ticket));
  while (!done) EXPECT_OK(runtime_.copy_done(ticket, done));
  void* staging = nullptr;
  EXPECT_OK(runtime_.host_allocate(5000, staging));
  EXPECT_EQ(MemoryKind::pinned, info(staging).kind);
  runtime_.host_free(staging, 5000);
  EXPECT_EQ(MemoryKind::device, info(memory).kind);
  constexpr int kActive = 1;
  int status = 0;
  EXPECT_CUDA(program().capture_status(stream, &status));
  EXPECT_EQ(kActive, status);
  void* graph = nullptr;
  EXPECT_CUDA(program().capture_end(stream, &graph));
  EXPECT_CUDA(program().graph_destroy(graph));
  EXPECT_CUDA(program().stream_destroy(stream));
  EXPECT_EQ(data, contents(memory, 1000));
}

// Long enough that a GPU is at it still when it is asked.
TEST_F(Cuda, tells_of_work_in_the_default_stream) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const DevicePointer from = cuda::address_of(allocate(kBytes));
  std::byte* const memory = allocate(kBytes);
  const auto enqueue = [&] {
    for (int i = 0; i < 4; ++i)
      EXPECT_CUDA(driver().copy_async(cuda::address_of(memory), from, kBytes, nullptr));
  };
  const auto is_busy = [&] {
    bool busy = false;
    EXPECT_OK(runtime_.default_stream_busy(info(memory), busy));
    return busy;
  };
  EXPECT_FALSE(is_busy());
  enqueue();
  EXPECT_TRUE(is_busy());
  while (is_busy()) {
  }
  // A capture of the program stays as it is.
  enqueue();
  cuda::Stream stream = nullptr;
  ASSERT_CUDA(driver().stream_create(&stream, 0));
  ASSERT_CUDA(program().capture_begin(stream, cuda::CaptureMode::global));
  EXPECT_FALSE(is_busy());
  void* graph = nullptr;
  EXPECT_CUDA(program().capture_end(stream, &graph));
  EXPECT_CUDA(program().graph_destroy(graph));
  EXPECT_CUDA(program().stream_destroy(stream));
  while (is_busy()) {
  }
}

// Pages that are the caller's, such as those shared with another process.
TEST_F(Cuda, pins_pages_of_the_caller) {
  constexpr std::size_t kBytes = 4096;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, pages);
  ASSERT_OK(runtime_.host_pin(pages, kBytes));
  EXPECT_EQ(MemoryKind::pinned, info(pages).kind);
  runtime_.host_unpin(pages);
  EXPECT_EQ(MemoryKind::host, info(pages).kind);
  munmap(pages, kBytes);
}

TEST_F(Cuda, errors_are_told_and_do_no_harm) {
  std::byte* memory = allocate(1000);
  const auto data = pattern(1000, 10);
  const Status status = copy_one(nullptr, memory, 1000);
  EXPECT_EQ(StatusCode::device_error, status.code());
  EXPECT_NE(std::string::npos, status.message().find("CUDA_ERROR_INVALID_VALUE"))
      << status.message();
  const Copy batch[] = {{memory, data.data(), 1000}, {nullptr, memory, 8}};
  EXPECT_CODE(device_error, runtime_.copy(0, batch));
  CopyTicket ticket;
  EXPECT_CODE(device_error, runtime_.copy_begin(0, batch, ticket));
  EXPECT_EQ(nullptr, ticket.handle);
  EXPECT_OK(copy_one(memory, data.data(), 1000));
  EXPECT_EQ(data, contents(memory, 1000));

  void* pointer = nullptr;
  EXPECT_CODE(invalid_argument, runtime_.allocate(-1, MemoryKind::device, 8, pointer));
  EXPECT_CODE(invalid_argument, runtime_.allocate(10000, MemoryKind::device, 8, pointer));
  EXPECT_CODE(invalid_argument, runtime_.allocate(0, MemoryKind::host, 8, pointer));
  EXPECT_CODE(no_memory, runtime_.allocate(0, MemoryKind::device, std::size_t{1} << 45, pointer));
  EXPECT_EQ(nullptr, pointer);
  int local = 0;
  ExportedMemory exported;
  EXPECT_CODE(invalid_argument, runtime_.free(&local));
  EXPECT_CODE(invalid_argument, runtime_.close_memory(&local));
  EXPECT_CODE(invalid_argument, runtime_.export_memory(&local, exported));
  EXPECT_CODE(invalid_argument, runtime_.open_memory(0, exported, pointer));
}

TEST_F(Cuda, own_allocations) {
  for (MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::pinned}) {
    void* pointer = nullptr;
    ASSERT_OK(runtime_.allocate(0, kind, 5000, pointer));
    EXPECT_EQ(kind, info(pointer).kind);
    const auto data = pattern(5000, 11);
    EXPECT_OK(copy_one(pointer, data.data(), 5000));
    EXPECT_EQ(data, contents(pointer, 5000));
    if (kind != MemoryKind::device) {
      ExportedMemory exported;
      EXPECT_CODE(unsupported, runtime_.export_memory(pointer, exported));
    }
    EXPECT_OK(runtime_.free(pointer));
    EXPECT_EQ(MemoryKind::host, info(pointer).kind);
  }
  void* pointer = &pointer;
  EXPECT_OK(runtime_.allocate(0, MemoryKind::device, 0, pointer));
  EXPECT_EQ(nullptr, pointer);
  EXPECT_OK(runtime_.free(nullptr));
}

// A program that has no context anywhere: one of ours must keep what accord_malloc gave.
TEST_F(Cuda, allocations_outlive_the_call_in_a_bare_program) {
  EXPECT_EQ(0, run_child({"--child=bare"}));
}

TEST_F(Cuda, staging_memory_need_not_be_registered) {
  EXPECT_EQ(0, run_child({"--child=no_register"}));
}

TEST_F(Cuda, primary_contexts_are_not_held) { EXPECT_EQ(0, run_child({"--child=released"})); }

TEST_F(Cuda, devices_are_described) {
  for (int device = 0; device < runtime_.device_count(); ++device) {
    DeviceDescription description;
    EXPECT_OK(runtime_.describe(device, description));
    EXPECT_FALSE(description.name.empty());
    EXPECT_EQ(40U, description.uuid.size()) << description.uuid;
    EXPECT_EQ(0U, description.uuid.find("GPU-"));
    EXPECT_GT(description.memory_bytes, std::size_t{1} << 28);
  }
  DeviceDescription description;
  EXPECT_CODE(invalid_argument, runtime_.describe(runtime_.device_count(), description));
  const auto count = static_cast<std::size_t>(runtime_.device_count());
  EXPECT_EQ(count * (count - 1), runtime_.links().size());
  EXPECT_TRUE(runtime_.present());
}

TEST_F(Cuda, another_process_opens_exported_memory) {
  std::byte* before =
      allocate(1000);  // so that the base is not the first byte of the driver's block
  std::byte* memory = allocate(kSharedBytes);
  EXPECT_NE(nullptr, before);
  const auto data = pattern(kSharedBytes, 12);
  ASSERT_OK(copy_one(memory, data.data(), kSharedBytes));
  ExportedMemory exported;
  ASSERT_OK(runtime_.export_memory(memory + kSharedOffset, exported));
  EXPECT_EQ(kSharedOffset, exported.offset_bytes);
  EXPECT_EQ(-1, exported.file_descriptor);
  EXPECT_EQ(
      0, run_child({"--child=importer", text_of(exported), std::to_string(exported.offset_bytes)}));
  EXPECT_EQ(pattern(1000, 13), contents(memory + kSharedOffset, 1000)) << "what the child wrote";
}

TEST_F(Cuda, nothing_happens_at_exit) { EXPECT_EQ(0, run_child({"--child=exit"})); }

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  constexpr std::string_view kChild = "--child=";
  if (!first.starts_with(kChild)) return accord::test::run_cuda_tests(argc, argv);
  accord::test::load_fake_driver();
  return accord::test::cuda_child(first.substr(kChild.size()), argv + 2);
}
