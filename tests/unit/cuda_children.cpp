// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The cases of cuda_runtime_test that need a process of their own.
#include <spawn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "cuda_test.h"
#include "device/layout_copy.h"
#include "device/registry.h"

namespace accord::test {
namespace {

using device::classify;
using device::CopyTicket;
using device::Element;
using device::ExportedMemory;
using device::LibraryStream;
using device::MemoryKind;
using device::must_stage;
using device::PointerInfo;
using device::Recording;
using device::ReduceOp;

// The children. Each returns 0, or the number of the check that failed.

#define CHECK(condition) \
  if (!(condition)) return __LINE__ % 200 + 10

int before_init() {
  const auto mapped = std::make_unique_for_overwrite<char[]>(std::size_t{64} << 20);
  CHECK(cuda_runtime().active());
  CHECK(!must_stage(mapped.get()));
  CHECK(classify(mapped.get()).kind == MemoryKind::host);
  if (std::getenv("ACCORD_TEST_FAKE_CUDA") == nullptr) CHECK(device::accelerator_present());
  void* staging = nullptr;
  CHECK(cuda_runtime().host_allocate(5000, staging).ok());
  std::memset(staging, 1, 5000);
  cuda_runtime().host_free(staging, 5000);
  CHECK(!cuda_runtime().can_reduce(ReduceOp::sum, Element::int32));
  int count = 0;
  CHECK(driver().device_get_count(&count) == Result::not_initialized);
  return 0;
}

// Where memory of our own cannot be registered (the fake driver refuses when told to), the driver's
// will do.
int no_register() {
  setenv("FAKE_CUDA_NO_REGISTER", "1", 1);
  void* pointer = nullptr;
  void* staging = nullptr;
  CHECK(cuda_runtime().allocate(0, MemoryKind::device, 5000, pointer).ok());
  CHECK(cuda_runtime().host_allocate(5000, staging).ok());
  CHECK(classify(staging).kind == MemoryKind::pinned);
  const auto data = pattern(5000, 1);
  std::memcpy(staging, data.data(), 5000);
  CHECK(copy_one(pointer, staging, 5000).ok());
  CHECK(contents(pointer, 5000) == data);
  cuda_runtime().host_free(staging, 5000);
  CHECK(classify(staging).kind == MemoryKind::host);
  CHECK(cuda_runtime().free(pointer).ok());
  return 0;
}

// Copies hold a device's primary context only while they run: the program's release is the last
// one.
int released() {
  Context context = nullptr;
  DevicePointer address = 0;
  device::cuda::Stream stream = nullptr;
  CHECK(driver().init(0) == Result::success);
  CHECK(driver().primary_context_retain(&context, 0) == Result::success);
  CHECK(driver().context_push(context) == Result::success);
  CHECK(driver().stream_create(&stream, 0) == Result::success);
  CHECK(program().memory_allocate_async(&address, 5000, stream) == Result::success);
  CHECK(driver().stream_synchronize(stream) == Result::success);
  std::thread([&] { contents(pointer_to(address), 5000); }).join();
  CHECK(program().memory_free_async(address, stream) == Result::success);
  CHECK(driver().stream_synchronize(stream) == Result::success);
  CHECK(program().stream_destroy(stream) == Result::success);
  CHECK(driver().context_pop(&context) == Result::success);
  CHECK(driver().primary_context_release(0) == Result::success);
  unsigned flags = 0;
  int is_active = 1;
  CHECK(driver().primary_context_get_state(0, &flags, &is_active) == Result::success);
  CHECK(is_active == 0);
  return 0;
}

int bare() {
  void* pointer = nullptr;
  CHECK(cuda_runtime().allocate(0, MemoryKind::device, 5000, pointer).ok());
  const auto data = pattern(5000, 1);
  CHECK(copy_one(pointer, data.data(), 5000).ok());
  CHECK(contents(pointer, 5000) == data);
  Context current = nullptr;
  CHECK(driver().context_get_current(&current) == Result::success && current == nullptr);
  CHECK(cuda_runtime().free(pointer).ok());
  return 0;
}

// Nothing of a stream that went with its context, and that the new context does not have, either.
bool refuses(LibraryStream& stream) {
  bool called = false;
  const Status status = stream.enqueue([&](void*) {
    called = true;
    return Status();
  });
  return !status.ok() && !called;
}

int reset() {
  CHECK(driver().init(0) == Result::success);
  void* staging = nullptr;
  for (int round = 0; round < 3; ++round) {
    Context context = nullptr;
    DevicePointer address = 0;
    CHECK(driver().primary_context_retain(&context, 0) == Result::success);
    CHECK(driver().context_push(context) == Result::success);
    CHECK(driver().memory_allocate(&address, 5000) == Result::success);
    if (round == 0) CHECK(cuda_runtime().host_allocate(5000, staging).ok());
    const auto data = pattern(5000, static_cast<unsigned>(round));
    // Memory from host_allocate stays usable when the device is reset, pinned or not.
    std::memcpy(staging, data.data(), 5000);
    CHECK(copy_one(pointer_to(address), staging, 5000).ok());
    CHECK(contents(pointer_to(address), 5000) == data);
    bool seen_by_thread = false;
    std::thread([&] { seen_by_thread = contents(pointer_to(address), 5000) == data; }).join();
    CHECK(seen_by_thread);
    Context popped = nullptr;
    CHECK(driver().context_pop(&popped) == Result::success);
    std::unique_ptr<LibraryStream> stream;
    CHECK(cuda_runtime().make_stream(0, stream).ok());
    std::unique_ptr<Recording> recording;
    CHECK(stream->record([](void*) { return Status(); }, recording).ok());
    const std::uint64_t life = cuda_runtime().context_life(0);
    CHECK(life != 0);
    CHECK(program().primary_reset(0) == Result::success);
    CHECK(cuda_runtime().context_life(0) == 0);
    CHECK(refuses(*stream));
    CHECK(classify(pointer_to(address)).kind == MemoryKind::host);
    void* own = nullptr;
    CHECK(cuda_runtime().allocate(0, MemoryKind::device, 5000, own).ok());
    CHECK(cuda_runtime().context_life(0) != 0);
    CHECK(cuda_runtime().context_life(0) != life);
    CHECK(copy_one(own, data.data(), 5000).ok());
    CHECK(contents(own, 5000) == data);
    CHECK(refuses(*stream));
    CHECK(cuda_runtime().free(own).ok());
  }
  cuda_runtime().host_free(staging, 5000);
  return 0;
}

// As written by text_of, with the offset and, where there is one, the number of an inherited
// descriptor behind it.
ExportedMemory exported_from(char** arguments) {
  const char* const text = arguments[0];
  ExportedMemory exported;
  for (std::size_t i = 0; i + 1 < std::strlen(text); i += 2) {
    exported.bytes.push_back(
        static_cast<std::byte>(std::stoul(std::string(text + i, 2), nullptr, 16)));
  }
  exported.offset_bytes = std::stoull(arguments[1]);
  if (arguments[2] != nullptr) exported.file_descriptor = std::stoi(arguments[2]);
  return exported;
}

int importer(char** arguments) {
  const ExportedMemory exported = exported_from(arguments);
  void* opened = nullptr;
  const Status status = cuda_runtime().open_memory(0, exported, opened);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  CHECK(status.ok());
  if (exported.file_descriptor >= 0) CHECK(close(exported.file_descriptor) == 0);
  auto* memory = static_cast<std::byte*>(opened);
  PointerInfo info;
  CHECK(cuda_runtime().classify(memory + kSharedBytes - 1, info));
  CHECK(info.kind == MemoryKind::device && info.device == 0);
  CHECK(contents(memory, kSharedBytes) == pattern(kSharedBytes, 12));
  const auto answer = pattern(1000, 13);
  CHECK(copy_one(memory + exported.offset_bytes, answer.data(), 1000).ok());
  CHECK(cuda_runtime().close_memory(opened).ok());
  CHECK(!cuda_runtime().classify(opened, info));
  return 0;
}

// Adds what another process exported to memory of its own, on the last device: where there are two,
// the kernel reads the other device's memory.
int reducer(char** arguments) {
  const ExportedMemory exported = exported_from(arguments);
  const int device = cuda_runtime().device_count() - 1;
  if (std::getenv("ACCORD_TEST_FAKE_CUDA") != nullptr) CHECK(device == 1);
  void* opened = nullptr;
  void* own = nullptr;
  CHECK(cuda_runtime().open_memory(device, exported, opened).ok());
  CHECK(cuda_runtime().allocate(device, MemoryKind::device, 1000, own).ok());
  CHECK(cuda_runtime().can_reduce(ReduceOp::sum, Element::uint8));
  const auto mine = pattern(1000, 13);
  CHECK(copy_one(own, mine.data(), 1000, device).ok());
  const auto* theirs = static_cast<const std::byte*>(opened) + exported.offset_bytes;
  const void* const sources[] = {own, theirs};
  CopyTicket ticket;
  const Status status = cuda_runtime().reduce_begin(
      device, {own, sources, 1000, ReduceOp::sum, Element::uint8}, ticket);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  CHECK(status.ok());
  for (bool done = false; !done;) CHECK(cuda_runtime().copy_done(ticket, done).ok());
  std::vector<unsigned char> seen(1000);
  CHECK(copy_one(seen.data(), own, 1000, device).ok());
  const auto other = pattern(kSharedBytes, 12);
  for (std::size_t i = 0; i < 1000; ++i) {
    CHECK(seen[i] == static_cast<unsigned char>(mine[i] + other[kSharedOffset + i]));
  }
  CHECK(cuda_runtime().close_memory(opened).ok());
  return cuda_runtime().free(own).ok() ? 0 : 1;
}

// A driver that does not take the kernels, as one older than nvcc may (the fake one when told to).
int no_kernels() {
  setenv("FAKE_CUDA_NO_KERNELS", "1", 1);
  if (std::getenv("ACCORD_TEST_FAKE_CUDA") == nullptr) return 0;
  void* memory = nullptr;
  CHECK(cuda_runtime().allocate(0, MemoryKind::device, 1000, memory).ok());
  CHECK(!cuda_runtime().can_reduce(ReduceOp::sum, Element::uint8));
  const void* const sources[] = {memory, memory};
  CopyTicket ticket;
  const Status status = cuda_runtime().reduce_begin(
      0, {memory, sources, 1000, ReduceOp::sum, Element::uint8}, ticket);
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(ticket.handle == nullptr);
  // A layout is followed all the same, by copies.
  void* pinned = nullptr;
  CHECK(cuda_runtime().allocate(0, MemoryKind::pinned, 500, pinned).ok());
  const auto* const packed = static_cast<const unsigned char*>(pinned);
  const auto data = pattern(1000, 3);
  CHECK(copy_one(memory, data.data(), 1000).ok());
  device::CopyBatch batch;
  batch.append({std::make_shared<const device::Typemap>(std::vector<device::Run>{{1, 1, 0}}, 2),
                static_cast<std::byte*>(memory), static_cast<std::byte*>(pinned), 0, 500,
                device::LayoutCopy::Direction::pack});
  CHECK(cuda_runtime().copy_batch(0, batch).ok());
  for (std::size_t i = 0; i < 500; ++i) CHECK(packed[i] == data[2 * i + 1]);
  CHECK(cuda_runtime().free(pinned).ok());
  return cuda_runtime().free(memory).ok() ? 0 : 1;
}

// Asks and copies once more from a static object's destructor, when the driver may have shut down.
struct LastCaller {
  ~LastCaller() {
    if (pointer == nullptr) return;
    static_cast<void>(classify(pointer));
    static_cast<void>(must_stage(pointer));
    unsigned char byte = 0;
    static_cast<void>(copy_one(&byte, pointer, 1));
    cuda_runtime().host_free(staging, 5000);
  }
  void* pointer = nullptr;
  void* staging = nullptr;
};
LastCaller last_caller;

int leave() {
  CHECK(cuda_runtime().allocate(0, MemoryKind::device, 5000, last_caller.pointer).ok());
  CHECK(cuda_runtime().host_allocate(5000, last_caller.staging).ok());
  return 0;
}

}  // namespace

std::string text_of(const ExportedMemory& exported) {
  std::string text;
  for (std::byte byte : exported.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

int run_child(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  std::vector<char*> list;
  for (std::string& argument : arguments) list.push_back(argument.data());
  list.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, list.data(), environ) != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int cuda_child(const std::string& name, char** arguments) {
  if (name == "before_init") return before_init();
  if (name == "bare") return bare();
  if (name == "no_register") return no_register();
  if (name == "released") return released();
  if (name == "reset") return reset();
  if (name == "importer") return importer(arguments);
  if (name == "reducer") return reducer(arguments);
  if (name == "no_kernels") return no_kernels();
  if (name == "exit") return leave();
  return resident_child(name);
}

}  // namespace accord::test
