// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A stand-in for libSynapse.so over host memory, loaded as Intel's is, so that the Synapse runtime
// is tested without a Gaudi. It is strict where Synapse is, or may be: addresses of the device are
// nowhere in the process, a process has one device, engines reach only host memory that is mapped
// for it. Streams work late (ACCORD_TEST_SYNAPSE_DELAY_US), each in a thread of its own.
// ACCORD_TEST_SYNAPSE_DEVICES: how many Gaudis there are, 4 where that is not set.
// ACCORD_TEST_SYNAPSE_FAIL=synDeviceMalloc:3 makes the third call of that function fail,
// synDeviceMalloc:3+ every call from the third on. A mistake of the caller that a Gaudi would only
// show as wrong bytes ends the process.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/synapse/driver.h"

// NOLINTBEGIN(readability-identifier-naming): Synapse's names
using namespace accord::device::synapse;

namespace accord::device::synapse {

struct StreamHandle {
  std::deque<std::function<void()>> pending;
  std::size_t unfinished = 0;
  bool destroyed = false;
};

}  // namespace accord::device::synapse

namespace {

constexpr auto kInvalidArgument = static_cast<Result>(1);
constexpr auto kNoDevice = static_cast<Result>(8);
constexpr auto kFail = static_cast<Result>(26);
constexpr auto kUninitialized = static_cast<Result>(28);

// As on a Gaudi 2: no address of a process looks like that.
constexpr Address kStart = 0x1001000000000000;
constexpr std::uint64_t kBytes = std::uint64_t{1} << 34;
constexpr std::uint64_t kAlignment = 128;
constexpr Module kFirstModule = 3;  // modules need not be numbered from 0

// Bytes of the device, or host memory that is mapped for it.
struct Memory {
  Memory(std::byte* at, std::size_t length_bytes) : bytes(at), size_bytes(length_bytes) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::munmap(bytes, size_bytes); }

  std::byte* const bytes;
  const std::size_t size_bytes;
};
using MemoryRef = std::shared_ptr<Memory>;

struct State {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool initialised = false;
  bool acquired = false;
  Module module = 0;
  Address next = kStart;
  std::map<Address, MemoryRef> on_device;
  std::map<Address, MemoryRef> on_host;
  long streams = 0;
  std::string failing;
  long failing_from = 0;
  bool failing_for_good = false;
  long failing_calls = 0;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "stand-in for Synapse: %s\n", what);
  std::abort();
}

void set_failure(State& state, const char* text) {
  const std::string all = text == nullptr ? "" : text;
  const std::size_t colon = all.find(':');
  state.failing = all.substr(0, colon);
  state.failing_from = colon == std::string::npos ? 0 : std::atol(all.c_str() + colon + 1);
  state.failing_for_good = all.find('+') != std::string::npos;
  state.failing_calls = 0;
}

State& state() {
  static State& only = *[] {
    auto* const made = new State;
    set_failure(*made, std::getenv("ACCORD_TEST_SYNAPSE_FAIL"));
    return made;
  }();
  return only;
}

std::uint32_t device_count() {
  const char* text = std::getenv("ACCORD_TEST_SYNAPSE_DEVICES");
  return text == nullptr ? 4 : static_cast<std::uint32_t>(std::atoi(text));
}

// The body of every function: fails where it is told to, else runs with the mutex held.
enum class Needs { nothing, library, device };
template <class Body>
Result api(const char* function, Needs needs, const Body& body) {
  std::unique_lock lock(state().mutex);
  if (state().failing == function) {
    ++state().failing_calls;
    if (state().failing_calls == state().failing_from ||
        (state().failing_for_good && state().failing_calls > state().failing_from))
      return kFail;
  }
  if (needs != Needs::nothing && !state().initialised) return kUninitialized;
  if (needs == Needs::device && !state().acquired) return kNoDevice;
  if constexpr (requires { body(lock); }) {
    return body(lock);
  } else {
    return body();
  }
}

MemoryRef map(std::size_t size_bytes) {
  void* const bytes =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return nullptr;
  return std::make_shared<Memory>(static_cast<std::byte*>(bytes), size_bytes);
}

// Where bytes are that the device knows under an address; null where it does not know them all.
std::byte* reach(const std::map<Address, MemoryRef>& all, Address address, std::uint64_t size_bytes,
                 std::vector<MemoryRef>& held) {
  auto next = all.upper_bound(address);
  if (next == all.begin()) return nullptr;
  const auto& [start, memory] = *std::prev(next);
  const std::uint64_t offset = address - start;
  if (offset >= memory->size_bytes || size_bytes > memory->size_bytes - offset) return nullptr;
  held.push_back(memory);
  return memory->bytes + offset;
}

void serve(Stream stream) {
  static const auto delay_us = [] {
    const char* text = std::getenv("ACCORD_TEST_SYNAPSE_DELAY_US");
    return static_cast<useconds_t>(text == nullptr ? 0 : std::strtol(text, nullptr, 10));
  }();
  std::unique_lock lock(state().mutex);
  for (;;) {
    state().changed.wait(lock, [&] { return !stream->pending.empty() || stream->destroyed; });
    if (stream->pending.empty()) break;
    std::function<void()> work = std::move(stream->pending.front());
    stream->pending.pop_front();
    lock.unlock();
    if (delay_us != 0) ::usleep(delay_us);
    work();
    work = nullptr;  // with what it holds
    lock.lock();
    --stream->unfinished;
    state().changed.notify_all();
  }
  delete stream;
}

void enqueue(Stream stream, std::function<void()> work) {
  stream->pending.push_back(std::move(work));
  ++stream->unfinished;
  state().changed.notify_all();
}

std::uint64_t attribute(Attribute asked) {
  switch (asked) {
    case Attribute::memory_start:
      return kStart;
    case Attribute::memory_bytes:
      return kBytes;
    case Attribute::type:
      return static_cast<std::uint64_t>(Type::gaudi2);
  }
  return 0;
}

}  // namespace

extern "C" {

// For tests: as ACCORD_TEST_SYNAPSE_FAIL, and what is held.
void accord_test_synapse_fail(const char* text) {
  const std::lock_guard lock(state().mutex);
  set_failure(state(), text);
}
void accord_test_synapse_count(long* objects, long* allocations) {
  const std::lock_guard lock(state().mutex);
  *objects = state().streams;
  *allocations = static_cast<long>(state().on_device.size() + state().on_host.size());
}

// For a stand-in of a collective library (tests/ccl/stream.h).
int accord_test_synapse_enqueue(Stream stream, void (*work)(void*), void (*drop)(void*),
                                void* argument) {
  const std::shared_ptr<void> kept(argument, drop);
  const std::lock_guard lock(state().mutex);
  enqueue(stream, [=] { work(kept.get()); });
  return 0;
}
void* accord_test_synapse_bytes_of(const void* pointer) {
  const std::lock_guard lock(state().mutex);
  std::vector<MemoryRef> held;
  std::byte* const found = reach(state().on_device, address_of(pointer), 1, held);
  return found != nullptr ? found : const_cast<void*>(pointer);
}

Result synInitialize() {
  return api(__func__, Needs::nothing, [] {
    if (device_count() == 0) return kNoDevice;
    return std::exchange(state().initialised, true) ? Result::already_initialized : Result::success;
  });
}
Result synDeviceGetCount(std::uint32_t* count) {
  return api(__func__, Needs::library, [&] {
    *count = device_count();
    return Result::success;
  });
}
Result synDeviceGetModuleIDs(Module* modules, std::uint32_t* size) {
  return api(__func__, Needs::library, [&] {
    if (*size < device_count()) return kInvalidArgument;
    *size = device_count();
    for (std::uint32_t i = 0; i < *size; ++i) modules[i] = kFirstModule + i;
    return Result::success;
  });
}
Result synDeviceAcquireByModuleId(DeviceId* device, Module module) {
  return api(__func__, Needs::library, [&] {
    if (module < kFirstModule || module >= kFirstModule + device_count()) return kNoDevice;
    if (std::exchange(state().acquired, true)) return Result::already_acquired;
    state().module = module;
    *device = 0;
    return Result::success;
  });
}
Result synDeviceGetPCIBusId(char* text, int length, DeviceId device) {
  return api(__func__, Needs::device, [&] {
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", state().module);
    return device == 0 ? Result::success : kInvalidArgument;
  });
}
Result synDeviceGetAttribute(std::uint64_t* values, const Attribute* asked, unsigned count,
                             DeviceId device) {
  return api(__func__, Needs::device, [&] {
    for (unsigned i = 0; i < count; ++i) values[i] = attribute(asked[i]);
    return device == 0 ? Result::success : kInvalidArgument;
  });
}
Result synDeviceGetAttributeByModuleId(std::uint64_t* values, const Attribute* asked,
                                       unsigned count, Module) {
  return api(__func__, Needs::library, [&] {
    for (unsigned i = 0; i < count; ++i) values[i] = attribute(asked[i]);
    return Result::success;
  });
}

Result synDeviceMalloc(DeviceId, std::uint64_t size_bytes, Address, std::uint32_t flags,
                       Address* address) {
  return api(__func__, Needs::device, [&] {
    if (flags != 0 || size_bytes == 0) return kInvalidArgument;
    if (size_bytes > kStart + kBytes - state().next) return Result::out_of_device_memory;
    MemoryRef made = map(size_bytes);
    if (made == nullptr) return Result::failed_to_allocate;
    *address = state().next;
    state().next += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    state().on_device.emplace(*address, std::move(made));
    return Result::success;
  });
}
Result synDeviceFree(DeviceId, Address address, std::uint32_t flags) {
  return api(__func__, Needs::device, [&] {
    return flags == 0 && state().on_device.erase(address) == 1 ? Result::success : kFail;
  });
}
Result synHostMalloc(DeviceId, std::uint64_t size_bytes, std::uint32_t flags, void** buffer) {
  return api(__func__, Needs::device, [&] {
    if (flags != 0 || size_bytes == 0) return kInvalidArgument;
    MemoryRef made = map(size_bytes);
    if (made == nullptr) return Result::out_of_host_memory;
    *buffer = made->bytes;
    state().on_host.emplace(address_of(made->bytes), std::move(made));
    return Result::success;
  });
}
Result synHostFree(DeviceId, const void* buffer, std::uint32_t flags) {
  return api(__func__, Needs::device, [&] {
    return flags == 0 && state().on_host.erase(address_of(buffer)) == 1 ? Result::success
                                                                        : kInvalidArgument;
  });
}

Result synMemCopyAsyncMultiple(Stream stream, const Address* src, const std::uint64_t* sizes,
                               const Address* dst, Direction direction, std::uint64_t count) {
  return api(__func__, Needs::device, [&] {
    struct Part {
      std::byte* dst;
      const std::byte* src;
      std::uint64_t size_bytes;
    };
    std::vector<Part> parts;
    std::vector<MemoryRef> held;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto& from = direction == Direction::to_device ? state().on_host : state().on_device;
      const auto& to = direction == Direction::to_host ? state().on_host : state().on_device;
      const Part part{reach(to, dst[i], sizes[i], held), reach(from, src[i], sizes[i], held),
                      sizes[i]};
      if (part.dst == nullptr || part.src == nullptr)
        fail("a copy from or to what the device does not reach");
      parts.push_back(part);
    }
    enqueue(stream, [parts = std::move(parts), held = std::move(held)] {
      for (const Part& part : parts) std::memcpy(part.dst, part.src, part.size_bytes);
    });
    return Result::success;
  });
}

Result synStreamCreateGeneric(Stream* stream, DeviceId, std::uint32_t flags) {
  return api(__func__, Needs::device, [&] {
    if (flags != 0) return kInvalidArgument;
    *stream = new StreamHandle;
    ++state().streams;
    std::thread(serve, *stream).detach();
    return Result::success;
  });
}
// What is on it goes on.
Result synStreamDestroy(Stream stream) {
  return api(__func__, Needs::device, [&] {
    stream->destroyed = true;
    --state().streams;
    state().changed.notify_all();
    return Result::success;
  });
}
Result synStreamSynchronize(Stream stream) {
  return api(__func__, Needs::device, [&](std::unique_lock<std::mutex>& lock) {
    state().changed.wait(lock, [&] { return stream->unfinished == 0; });
    return Result::success;
  });
}
Result synStreamQuery(Stream stream) {
  return api(__func__, Needs::device,
             [&] { return stream->unfinished == 0 ? Result::success : Result::busy; });
}

}  // extern "C"
// NOLINTEND
