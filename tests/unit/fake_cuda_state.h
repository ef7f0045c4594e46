// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the fake driver of fake_cuda.cpp remembers, and its rules.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <type_traits>
#include <vector>

#include "device/cuda/driver.h"

namespace accord::device::cuda {

struct ContextHandle {
  Device device = 0;
  unsigned long long id = 0;
  bool alive = false;
  unsigned flags = 0;
  Result failed = Result::success;  // a kernel has faulted: nothing works in it any more
};

// What was captured, and a program made of it.
struct GraphHandle {
  std::vector<std::function<void()>> works;
};
struct GraphProgramHandle : GraphHandle {};

struct StreamHandle {
  Context context = nullptr;
  unsigned long long context_id = 0;
  std::deque<std::function<void()>> pending;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  bool capturing = false;
  CaptureMode capture_mode = CaptureMode::global;
  std::vector<std::function<void()>> captured;
  int polls = 0;
  std::uint64_t residents_launched = 0;  // kernels of inbox exchanges: one after the other
  std::uint64_t residents_left = 0;
};

struct EventHandle {
  Context context = nullptr;
  unsigned long long context_id = 0;
  Stream stream = nullptr;
  std::uint64_t mark = 0;
  int polls = 0;
};

// Memory of the virtual memory API: lives while it has a handle or is mapped.
struct PhysicalMemory {
  int file = -1;
  std::size_t size_bytes = 0;
  Device device = 0;
  bool exportable = false;
  int references = 0;
  unsigned long long block_id = 0;
};

struct PoolHandle {
  Device device = 0;
  bool exportable = false;
  bool imported = false;
  unsigned access = 0;  // of an imported one: bits of devices
  int file = -1;        // what is exported: it holds the number
  unsigned long long number = 0;
};

// Addresses without memory.
struct Reservation {
  std::size_t size_bytes = 0;
  unsigned long long buffer_id = 0;
};

constexpr auto kInvalidHandle = static_cast<Result>(400);
constexpr auto kCaptureUnsupported = static_cast<Result>(900);
constexpr auto kCaptureInvalidated = static_cast<Result>(901);
inline const Stream kStreamPerThread = reinterpret_cast<Stream>(std::uintptr_t{2});
constexpr auto kCaptureImplicit = static_cast<Result>(906);
constexpr int kDevices = 2;
constexpr int kMultiprocessors = 132;
constexpr int kPollsBeforeDone = 3;
constexpr std::size_t kDeviceBytes = std::size_t{1} << 30;

struct FakeIpcHandle {
  int process = 0;
  int file = -1;
  std::size_t size_bytes = 0;
  std::uintptr_t address = 0;  // there; 0: none that matters
  unsigned long long buffer_id = 0;
};

struct Allocation {
  std::size_t size_bytes = 0;
  std::size_t mapped_bytes = 0;
  Context context = nullptr;  // null: from a pool, or mapped
  Pool pool = nullptr;
  MemoryHandle physical = 0;  // that is mapped here
  unsigned access = 0;        // without a context: bits of devices
  Device device = 0;
  MemoryType type = MemoryType::device;
  bool managed = false;
  bool is_synchronous = false;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  bool registered = false;  // not ours to unmap
  bool opened = false;
  int file = -1;
  unsigned long long buffer_id = 0;
  FakeIpcHandle theirs;  // opened by handle
};

struct DriverState {
  std::mutex mutex;
  bool initialised = false;
  bool shut_down = false;
  unsigned long long last_id = 0;
  std::array<ContextHandle, kDevices> primaries{};
  std::array<int, kDevices> primary_references{};
  std::vector<Context> destroyed;
  std::map<std::uintptr_t, Allocation> allocations;
  std::set<Stream> streams;
  std::map<unsigned long long, StreamHandle> legacy_streams;  // by context
  std::map<std::uintptr_t, Reservation> reservations;
  std::map<MemoryHandle, PhysicalMemory> physical;
  std::array<PoolHandle, kDevices> default_pools{};
  int global_captures = 0;
  bool capture_ended = false;  // by a call that waits for the context
  unsigned turns = 0;          // copies and kernels that wait for their turn on a shared device
};

inline DriverState& state = *new DriverState;

// Without a destructor, as the driver is asked even while a thread or the process ends.
struct ContextStack {
  std::array<Context, 16> entries{};
  std::size_t depth = 0;

  bool push(Context context) {
    if (depth == entries.size()) return false;
    entries[depth++] = context;
    return true;
  }
  Context top() const { return depth == 0 ? nullptr : entries[depth - 1]; }
};
inline thread_local ContextStack context_stack;
inline thread_local CaptureMode capture_mode = CaptureMode::global;

inline Context current() { return context_stack.top(); }

// A stream as the driver is given it: null is the legacy stream of the current context.
inline Stream resolved(Stream stream) {
  if (stream != nullptr || current() == nullptr) return stream;
  StreamHandle& legacy = state.legacy_streams[current()->id];
  legacy.context = current();
  legacy.context_id = current()->id;
  return &legacy;
}

// What every call says before cuInit, and after the driver has shut down at exit.
inline Result check_initialised() {
  if (state.shut_down) return Result::deinitialized;
  return state.initialised ? Result::success : Result::not_initialized;
}

inline Result check_context() {
  if (const Result result = check_initialised(); result != Result::success) return result;
  if (current() == nullptr) return Result::invalid_context;
  return current()->alive ? current()->failed : Result::context_is_destroyed;
}

// The checks of a call that a capture forbids.
inline Result check_unsafe() {
  if (const Result result = check_context(); result != Result::success) return result;
  return state.global_captures > 0 && capture_mode != CaptureMode::relaxed ? kCaptureUnsupported
                                                                           : Result::success;
}

template <class Handle>
bool usable(const Handle* handle) {
  return handle != nullptr && handle->context == current() && handle->context->alive &&
         handle->context->id == handle->context_id;
}

inline std::map<std::uintptr_t, Allocation>::iterator find(std::uintptr_t address) {
  auto next = state.allocations.upper_bound(address);
  if (next == state.allocations.begin()) return state.allocations.end();
  const auto entry = std::prev(next);
  return address - entry->first < entry->second.size_bytes ? entry : state.allocations.end();
}

inline bool range_is_valid(DevicePointer address, std::size_t size_bytes) {
  if (address == 0) return false;
  const auto entry = find(static_cast<std::uintptr_t>(address));
  return entry == state.allocations.end() ||
         address - entry->first + size_bytes <= entry->second.size_bytes;
}

inline Result allocate(Allocation allocation, void** pointer) {
  allocation.mapped_bytes = (allocation.size_bytes + 4095) / 4096 * 4096;
  if (allocation.size_bytes > kDeviceBytes) return Result::out_of_memory;
  allocation.file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (ftruncate(allocation.file, static_cast<off_t>(allocation.mapped_bytes)) != 0) {
    return Result::out_of_memory;
  }
  void* memory = mmap(nullptr, allocation.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      allocation.file, 0);
  if (memory == MAP_FAILED) return Result::out_of_memory;
  allocation.buffer_id = ++state.last_id;
  state.allocations[reinterpret_cast<std::uintptr_t>(memory)] = allocation;
  *pointer = memory;
  return Result::success;
}

inline void unmap(std::uintptr_t address, const Allocation& allocation) {
  if (allocation.file >= 0) close(allocation.file);
  if (!allocation.registered) munmap(reinterpret_cast<void*>(address), allocation.mapped_bytes);
}

template <class Test>
Result release(std::uintptr_t address, Test test, Result otherwise) {
  const auto entry = state.allocations.find(address);
  if (entry == state.allocations.end() || !test(entry->second)) return otherwise;
  unmap(address, entry->second);
  state.allocations.erase(entry);
  return Result::success;
}

inline void run_until(StreamHandle& stream, std::uint64_t mark) {
  while (stream.completed < mark) {
    stream.pending.front()();
    stream.pending.pop_front();
    ++stream.completed;
  }
  stream.polls = 0;
}

// What synchronous calls have left in the context's legacy stream lands.
inline void land(const ContextHandle& context) {
  const auto legacy = state.legacy_streams.find(context.id);
  if (legacy != state.legacy_streams.end()) run_until(legacy->second, legacy->second.enqueued);
}

// At the address of the last one that was destroyed, as a real driver may.
inline Context new_context() {
  if (state.destroyed.empty()) return new ContextHandle;
  const Context made = state.destroyed.back();
  state.destroyed.pop_back();
  *made = {};
  return made;
}

inline void destroy(ContextHandle& context) {
  land(context);
  context.alive = false;
  context.flags = 0;
  for (auto entry = state.allocations.begin(); entry != state.allocations.end();) {
    if (entry->second.context == &context) {
      unmap(entry->first, entry->second);
      entry = state.allocations.erase(entry);
    } else {
      ++entry;
    }
  }
}

inline Result enqueue(Stream stream, std::function<void()> work) {
  if (const Result result = check_context(); result != Result::success) return result;
  if (!usable(stream)) return kInvalidHandle;
  // The tests' own captures are for what must not come into them.
  if (stream->capturing && stream->capture_mode == CaptureMode::global) return kCaptureUnsupported;
  if (stream->capturing) {
    stream->captured.push_back(std::move(work));
    return Result::success;
  }
  stream->pending.push_back(std::move(work));
  ++stream->enqueued;
  return Result::success;
}

template <class Type>
void give(void* data, Type value) {
  std::memcpy(data, &value, sizeof value);
}

inline bool can_access(const Allocation& allocation, Context context) {
  return context != nullptr && (allocation.access >> context->device & 1) != 0;
}

struct Range {
  std::uintptr_t start;
  std::size_t size_bytes;
  unsigned long long buffer_id;
};

// Of what is mapped the whole reservation, with an id that stays when other memory is mapped: the
// driver promises no more.
inline Range range_of(const std::pair<const std::uintptr_t, Allocation>& entry) {
  const Allocation& allocation = entry.second;
  if (allocation.physical == 0) return {entry.first, allocation.size_bytes, allocation.buffer_id};
  const auto& [start, reservation] = *std::prev(state.reservations.upper_bound(entry.first));
  return {start, reservation.size_bytes, reservation.buffer_id};
}

// Writes one attribute as wide as the driver does; false where it does not apply.
inline bool give_attribute(void* data, PointerAttribute attribute, std::uintptr_t address) {
  const auto entry = find(address);
  if (entry == state.allocations.end()) return false;
  const Allocation& allocation = entry->second;
  switch (attribute) {
    case PointerAttribute::context:
      if (allocation.context == nullptr) return false;
      give(data, allocation.context);
      return true;
    case PointerAttribute::pool:
      give(data, allocation.pool);
      return true;
    case PointerAttribute::access_flags:
      give(data, allocation.context != nullptr || can_access(allocation, current())
                     ? kAccessReadWrite
                     : 0u);
      return true;
    case PointerAttribute::mapping_start:
      give(data, entry->first);
      return true;
    case PointerAttribute::mapping_size:
      give(data, allocation.mapped_bytes);
      return true;
    case PointerAttribute::memory_block_id:
      if (allocation.physical == 0) return false;
      give(data, state.physical.at(allocation.physical).block_id);
      return true;
    case PointerAttribute::memory_type:
      give(data, allocation.type);
      return true;
    case PointerAttribute::device_pointer:
      give(data, address);
      return true;
    case PointerAttribute::buffer_id:
      give(data, range_of(*entry).buffer_id);
      return true;
    case PointerAttribute::is_managed:
      give(data, static_cast<unsigned>(allocation.managed));
      return true;
    case PointerAttribute::device_ordinal:
      give(data, allocation.device);
      return true;
    case PointerAttribute::sync_memory_operations:
      give(data, static_cast<unsigned>(allocation.is_synchronous));
      return true;
    case PointerAttribute::is_legacy_ipc_capable:
      give(data, allocation.context != nullptr && allocation.type == MemoryType::device &&
                     !allocation.managed);
      return true;
    case PointerAttribute::range_start:
      give(data, range_of(*entry).start);
      return true;
    case PointerAttribute::range_size:
      give(data, range_of(*entry).size_bytes);
      return true;
  }
  return false;
}

// An older allocation of that process, which it has freed, is open here and covers the address.
inline bool is_covered(const FakeIpcHandle& theirs) {
  return theirs.address != 0 && std::ranges::any_of(state.allocations, [&](const auto& entry) {
           const FakeIpcHandle& open = entry.second.theirs;
           return open.process == theirs.process && open.buffer_id != theirs.buffer_id &&
                  open.address < theirs.address + theirs.size_bytes &&
                  theirs.address < open.address + open.size_bytes;
         });
}

// Maps an allocation of another process.
inline Result open_theirs(const FakeIpcHandle& theirs, Allocation allocation,
                          DevicePointer* address) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", theirs.process, theirs.file);
  allocation.file = open(path.data(), O_RDWR | O_CLOEXEC);
  if (allocation.file < 0) return Result::invalid_value;
  allocation.size_bytes = theirs.size_bytes;
  allocation.mapped_bytes = (theirs.size_bytes + 4095) / 4096 * 4096;
  allocation.buffer_id = ++state.last_id;
  void* memory = mmap(nullptr, allocation.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      allocation.file, 0);
  if (memory == MAP_FAILED) return Result::out_of_memory;
  *address = address_of(memory);
  state.allocations[reinterpret_cast<std::uintptr_t>(memory)] = allocation;
  return Result::success;
}

}  // namespace accord::device::cuda
