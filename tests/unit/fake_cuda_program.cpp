// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake driver's synchronous calls, which only programs make, and what decides when they return:
// the flag of a context, the attribute of an allocation. As on a GPU a copy to memory of the device
// and a memset return before they have landed, unless one of the two is set; here they land as late
// as they may: when somebody waits for the default stream or the context, asks often, or copies to
// the host. FAKE_CUDA_NO_FLAG: a driver that takes no such flag.
#include "fake_cuda_program.h"

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "fake_cuda_inbox.h"
#include "fake_cuda_state.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace accord::device::cuda;

namespace {

std::condition_variable kernel_ended;
bool kernel_runs = false;  // one that nothing but a test ends

bool is_flagged(const ContextHandle& context) {
  return (context.flags & kContextSyncMemoryOperations) != 0;
}

bool is_synchronous(DevicePointer address) {
  const auto entry = find(static_cast<std::uintptr_t>(address));
  return entry != state.allocations.end() && entry->second.is_synchronous;
}

Result run(DevicePointer dst, std::function<void()> work) {
  const Result result = enqueue(resolved(nullptr), std::move(work));
  if (result == Result::success && (is_flagged(*current()) || is_synchronous(dst)))
    land(*current());
  return result;
}

Result set_flags(std::unique_lock<std::mutex>& lock, ContextHandle& context, unsigned flags) {
  if (std::getenv("FAKE_CUDA_NO_FLAG") != nullptr) return Result::invalid_value;
  const bool sets = !is_flagged(context) && (flags & kContextSyncMemoryOperations) != 0;
  if (sets && context.alive) {
    if (state.global_captures > 0) state.capture_ended = true;
    kernel_ended.wait(lock, [] { return !kernel_runs; });
    await_residents(lock, context);
    land(context);
  }
  context.flags = flags;
  return Result::success;
}

}  // namespace

extern "C" {

Result cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned flags) {
  std::unique_lock lock(state.mutex);
  if (const Result result = check_initialised(); result != Result::success) return result;
  return set_flags(lock, state.primaries.at(static_cast<std::size_t>(device)), flags);
}
Result cuCtxGetFlags(unsigned* flags) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  *flags = current()->flags;
  return Result::success;
}
Result cuCtxSetFlags(unsigned flags) {
  std::unique_lock lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  return set_flags(lock, *current(), flags);
}

Result cuPointerSetAttribute(const void* value, PointerAttribute attribute, DevicePointer address) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  const auto entry = find(static_cast<std::uintptr_t>(address));
  if (attribute != PointerAttribute::sync_memory_operations || entry == state.allocations.end())
    return Result::invalid_value;
  if (entry->second.physical != 0) return Result::not_supported;
  entry->second.is_synchronous = *static_cast<const unsigned*>(value) != 0;
  return Result::success;
}

Result cuMemcpyHtoD_v2(DevicePointer dst, const void* src, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  const auto* const bytes = static_cast<const unsigned char*>(src);
  return run(dst, [dst, sent = std::vector<unsigned char>(bytes, bytes + size_bytes)] {
    std::memcpy(reinterpret_cast<void*>(dst), sent.data(), sent.size());
  });
}
Result cuMemcpyDtoD_v2(DevicePointer dst, DevicePointer src, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  return run(dst, [=] {
    std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), size_bytes);
  });
}
Result cuMemsetD8_v2(DevicePointer dst, unsigned char value, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  return run(dst, [=] { std::memset(reinterpret_cast<void*>(dst), value, size_bytes); });
}
Result cuMemcpyDtoH_v2(void* dst, DevicePointer src, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  land(*current());
  std::memcpy(dst, reinterpret_cast<const void*>(src), size_bytes);
  return Result::success;
}

// A kernel begins in a stream that is none of the default ones.
void fake_cuda_begin_kernel() {
  const std::lock_guard lock(state.mutex);
  kernel_runs = true;
}
void fake_cuda_end_kernel() {
  const std::lock_guard lock(state.mutex);
  kernel_runs = false;
  kernel_ended.notify_all();
}

}  // extern "C"
// NOLINTEND
