// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A stand-in for libcuda.so.1 over host memory, so that the tests of the CUDA runtime run without a
// GPU. It is strict where the driver is: calls need an initialised driver and the right current
// context, streams and events die with their context, a capture in global mode forbids most calls
// to threads that are not relaxed, pool memory has no context and no IPC handle. Asynchronous
// copies really happen late: only when somebody waits or asks often.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "fake_cuda_inbox.h"
#include "fake_cuda_kernels.h"
#include "fake_cuda_program.h"
#include "fake_cuda_share.h"
#include "fake_cuda_state.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace accord::device::cuda;

// As an H100 did, driver 580: what stays within a device is copied by a kernel, and less than 28
// KiB in one row goes there by the queue of the kernels.
void count_turn(DevicePointer dst, DevicePointer src, std::size_t size_bytes, std::size_t rows) {
  constexpr std::size_t kByEngineFrom = std::size_t{28} << 10;
  const auto on_device = [](DevicePointer address) {
    auto type = MemoryType::none;
    return give_attribute(&type, PointerAttribute::memory_type, address) &&
           type == MemoryType::device;
  };
  if (!on_device(dst)) return;
  if (on_device(src) || (rows == 1 && size_bytes < kByEngineFrom)) ++state.turns;
}

extern "C" {

Result cuGetErrorName(Result result, const char** text) {
  *text = result == Result::invalid_value ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_FAKE";
  return Result::success;
}
Result cuGetErrorString(Result, const char** text) {
  *text = "said by the fake driver";
  return Result::success;
}
Result cuInit(unsigned flags) {
  const std::lock_guard lock(state.mutex);
  if (state.shut_down) return Result::deinitialized;
  if (std::getenv("FAKE_CUDA_NO_INIT") != nullptr) return static_cast<Result>(999);
  // The driver shuts down when the process exits, before objects that are older than this.
  if (!state.initialised && flags == 0) std::atexit([] { state.shut_down = true; });
  state.initialised = state.initialised || flags == 0;
  return flags == 0 ? Result::success : Result::invalid_value;
}
Result cuDeviceGetCount(int* count) {
  *count = kDevices;
  return check_initialised();
}
Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < kDevices ? Result::success : static_cast<Result>(101);
}
Result cuDeviceGetName(char* name, int length, Device device) {
  std::snprintf(name, static_cast<std::size_t>(length), "fake device %d", device);
  return Result::success;
}
Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  std::memset(uuid->bytes, 0x10 + device, sizeof uuid->bytes);
  // The devices of one run of a test, and its children's, are not another's: they are claimed.
  const char* machine = std::getenv("FAKE_CUDA_MACHINE");
  std::snprintf(reinterpret_cast<char*>(uuid->bytes), 8, "%s", machine != nullptr ? machine : "");
  return Result::success;
}
// FAKE_CUDA_MPS: as a client of NVIDIA's Multi-Process Service.
Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, Device) {
  const bool is_client = std::getenv("FAKE_CUDA_MPS") != nullptr;
  *value = attribute == DeviceAttribute::multiprocessors ? kMultiprocessors : is_client ? 1 : 0;
  return Result::success;
}
Result cuDeviceTotalMem_v2(std::size_t* size_bytes, Device) {
  *size_bytes = kDeviceBytes;
  return Result::success;
}
Result cuDeviceCanAccessPeer(int* can, Device, Device) {
  *can = 1;
  return Result::success;
}
Result cuDeviceGetP2PAttribute(int* value, P2pAttribute, Device, Device) {
  *value = 0;
  return Result::success;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_initialised(); result != Result::success) return result;
  const auto index = static_cast<std::size_t>(device);
  ContextHandle& primary = state.primaries.at(index);
  if (!primary.alive) {  // the same handle, a new id
    primary.device = device;
    primary.id = ++state.last_id;
    primary.alive = true;
    primary.failed = Result::success;
  }
  ++state.primary_references.at(index);
  *context = &primary;
  return Result::success;
}
Result cuDevicePrimaryCtxRelease_v2(Device device) {
  std::unique_lock lock(state.mutex);
  const auto index = static_cast<std::size_t>(device);
  int& references = state.primary_references.at(index);
  if (references == 0) return Result::invalid_context;
  if (--references > 0) return Result::success;
  await_residents(lock, state.primaries.at(index));
  destroy(state.primaries.at(index));
  return Result::success;
}
Result cuDevicePrimaryCtxReset_v2(Device device) {
  std::unique_lock lock(state.mutex);
  const auto index = static_cast<std::size_t>(device);
  state.primary_references.at(index) = 0;
  await_residents(lock, state.primaries.at(index));
  destroy(state.primaries.at(index));
  return Result::success;
}
Result cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  const std::lock_guard lock(state.mutex);
  const ContextHandle& primary = state.primaries.at(static_cast<std::size_t>(device));
  *flags = primary.flags;
  *active = primary.alive ? 1 : 0;
  return check_initialised();
}
Result cuCtxCreate_v2(Context* context, unsigned, Device device) {
  const std::lock_guard lock(state.mutex);
  *context = new_context();
  (*context)->device = device;
  (*context)->id = ++state.last_id;
  (*context)->alive = true;
  return context_stack.push(*context) ? Result::success : Result::out_of_memory;
}
Result cuCtxDestroy_v2(Context context) {
  std::unique_lock lock(state.mutex);
  await_residents(lock, *context);
  destroy(*context);
  state.destroyed.push_back(context);
  if (current() == context) --context_stack.depth;
  return Result::success;
}
Result cuCtxPushCurrent_v2(Context context) {
  if (const Result result = check_initialised(); result != Result::success) return result;
  if (context == nullptr) return Result::invalid_context;
  if (!context->alive) return Result::context_is_destroyed;
  return context_stack.push(context) ? Result::success : Result::out_of_memory;
}
Result cuCtxPopCurrent_v2(Context* context) {
  if (context_stack.depth == 0) return Result::invalid_context;
  *context = current();
  --context_stack.depth;
  return Result::success;
}
Result cuCtxGetCurrent(Context* context) {
  *context = current();
  return check_initialised();
}
Result cuCtxGetDevice(Device* device) {
  if (const Result result = check_context(); result != Result::success) return result;
  *device = current()->device;
  return Result::success;
}
Result cuCtxGetId(Context context, unsigned long long* id) {
  if (context == nullptr || !context->alive) return Result::context_is_destroyed;
  *id = context->id;
  return Result::success;
}

Result cuPointerGetAttribute(void* data, PointerAttribute attribute, DevicePointer address) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_initialised(); result != Result::success) return result;
  return give_attribute(data, attribute, static_cast<std::uintptr_t>(address))
             ? Result::success
             : Result::invalid_value;
}
Result cuPointerGetAttributes(unsigned count, PointerAttribute* attributes, void** data,
                              DevicePointer address) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_initialised(); result != Result::success) return result;
  for (unsigned i = 0; i < count; ++i) {
    if (!give_attribute(data[i], attributes[i], static_cast<std::uintptr_t>(address))) {
      give(data[i], 0);
    }
  }
  return Result::success;
}

Result cuMemAlloc_v2(DevicePointer* address, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  Allocation allocation;
  allocation.size_bytes = size_bytes;
  allocation.context = current();
  allocation.device = current()->device;
  return allocate(allocation, reinterpret_cast<void**>(address));
}
Result cuMemAllocManaged(DevicePointer* address, std::size_t size_bytes, unsigned) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  Allocation allocation;
  allocation.size_bytes = size_bytes;
  allocation.context = current();
  allocation.device = current()->device;
  allocation.managed = true;
  return allocate(allocation, reinterpret_cast<void**>(address));
}
Result cuMemAllocAsync(DevicePointer* address, std::size_t size_bytes, Stream) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  return allocate_from(state.default_pools.at(static_cast<std::size_t>(current()->device)),
                       current()->device, size_bytes, address);
}
Result cuMemFree_v2(DevicePointer address) {
  std::unique_lock lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  await_residents(lock, *current());
  land(*current());
  return release(
      static_cast<std::uintptr_t>(address),
      [](const Allocation& found) {
        return found.type == MemoryType::device && !found.opened && found.physical == 0;
      },
      Result::invalid_value);
}
Result cuMemFreeAsync(DevicePointer address, Stream) { return cuMemFree_v2(address); }
Result cuMemHostAlloc(void** pointer, std::size_t size_bytes, unsigned) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  Allocation allocation;
  allocation.size_bytes = size_bytes;
  allocation.context = current();
  allocation.device = current()->device;
  allocation.type = MemoryType::host;
  return allocate(allocation, pointer);
}
Result cuMemFreeHost(void* pointer) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  return release(
      reinterpret_cast<std::uintptr_t>(pointer),
      [](const Allocation& found) { return found.type == MemoryType::host && !found.registered; },
      Result::invalid_value);
}
Result cuMemHostRegister_v2(void* pointer, std::size_t size_bytes, unsigned) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  if (std::getenv("FAKE_CUDA_NO_REGISTER") != nullptr) return Result::not_supported;
  Allocation allocation;
  allocation.size_bytes = size_bytes;
  allocation.context = current();
  allocation.device = current()->device;
  allocation.type = MemoryType::host;
  allocation.registered = true;
  allocation.buffer_id = ++state.last_id;
  state.allocations[reinterpret_cast<std::uintptr_t>(pointer)] = allocation;
  return Result::success;
}
Result cuMemHostUnregister(void* pointer) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  return release(
      reinterpret_cast<std::uintptr_t>(pointer),
      [](const Allocation& found) { return found.registered; }, Result::host_memory_not_registered);
}

Result cuMemcpy(DevicePointer dst, DevicePointer src, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  if (state.global_captures > 0) return kCaptureImplicit;
  if (!range_is_valid(dst, size_bytes) || !range_is_valid(src, size_bytes)) {
    return Result::invalid_value;
  }
  land(*current());
  count_turn(dst, src, size_bytes, 1);
  std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), size_bytes);
  return Result::success;
}
Result cuMemcpyAsync(DevicePointer dst, DevicePointer src, std::size_t size_bytes, Stream stream) {
  const std::lock_guard lock(state.mutex);
  if (!range_is_valid(dst, size_bytes) || !range_is_valid(src, size_bytes)) {
    return Result::invalid_value;
  }
  count_turn(dst, src, size_bytes, 1);
  return enqueue(resolved(stream), [=] {
    std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), size_bytes);
  });
}
Result cuMemcpy2DAsync_v2(const Copy2d* copy, Stream stream) {
  const std::lock_guard lock(state.mutex);
  const Copy2d all = *copy;
  if (all.src_type != MemoryType::unified || all.dst_type != MemoryType::unified ||
      all.src_pitch_bytes < all.width_bytes || all.dst_pitch_bytes < all.width_bytes ||
      !range_is_valid(all.dst_device, (all.height - 1) * all.dst_pitch_bytes + all.width_bytes) ||
      !range_is_valid(all.src_device, (all.height - 1) * all.src_pitch_bytes + all.width_bytes)) {
    return Result::invalid_value;
  }
  count_turn(all.dst_device, all.src_device, all.width_bytes, all.height);
  return enqueue(stream, [all] {
    for (std::size_t row = 0; row < all.height; ++row) {
      std::memcpy(reinterpret_cast<void*>(all.dst_device + row * all.dst_pitch_bytes),
                  reinterpret_cast<const void*>(all.src_device + row * all.src_pitch_bytes),
                  all.width_bytes);
    }
  });
}

Result cuStreamCreate(Stream* stream, unsigned) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  *stream = new StreamHandle;
  (*stream)->context = current();
  (*stream)->context_id = current()->id;
  state.streams.insert(*stream);
  return Result::success;
}
Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return Result::success;
}
Result cuStreamDestroy_v2(Stream stream) {
  const std::lock_guard lock(state.mutex);
  if (!usable(stream)) std::abort();  // freed with its context
  state.streams.erase(stream);
  delete stream;
  return Result::success;
}
Result cuStreamSynchronize(Stream given) {
  std::unique_lock lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  const Stream stream = resolved(given);
  if (!usable(stream)) return kInvalidHandle;
  await_residents(lock, *stream);
  run_until(*stream, stream->enqueued);
  return check_context();
}
Result cuCtxSynchronize() {
  std::unique_lock lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  await_residents(lock, *current());
  land(*current());
  return check_context();
}
Result cuStreamQuery(Stream given) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  if (given == kStreamPerThread) return Result::success;
  const Stream stream = resolved(given);
  // The question would make a dependency of the capture's on the legacy stream: it is lost.
  if (given == nullptr && state.global_captures > 0) std::abort();
  if (!usable(stream)) return kInvalidHandle;
  if (stream->residents_left < stream->residents_launched ||
      (stream->completed < stream->enqueued && ++stream->polls < kPollsBeforeDone)) {
    return Result::not_ready;
  }
  run_until(*stream, stream->enqueued);
  return Result::success;
}
Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return Result::success;
}
Result cuStreamBeginCapture_v2(Stream stream, CaptureMode mode) {
  const std::lock_guard lock(state.mutex);
  if (!usable(stream)) return kInvalidHandle;
  stream->capturing = true;
  stream->capture_mode = mode;
  if (mode == CaptureMode::global) ++state.global_captures;
  return Result::success;
}
Result cuStreamIsCapturing(Stream stream, CaptureStatus* status) {
  const std::lock_guard lock(state.mutex);
  if (stream == nullptr && state.global_captures > 0) return kCaptureImplicit;
  *status = resolved(stream)->capturing ? CaptureStatus::active : CaptureStatus::none;
  return Result::success;
}
Result cuStreamEndCapture(Stream stream, Graph* graph) {
  const std::lock_guard lock(state.mutex);
  if (!stream->capturing) return Result::invalid_value;
  stream->capturing = false;
  if (stream->capture_mode == CaptureMode::global) --state.global_captures;
  if (std::exchange(state.capture_ended, false)) return kCaptureInvalidated;
  *graph = new GraphHandle{std::exchange(stream->captured, {})};
  return Result::success;
}
Result cuGraphDestroy(Graph graph) {
  delete graph;
  return Result::success;
}
Result cuGraphInstantiateWithFlags(GraphProgram* program, Graph graph, unsigned long long flags) {
  if (flags != 0 || graph == nullptr) return Result::invalid_value;
  *program = new GraphProgramHandle{*graph};
  return Result::success;
}
Result cuGraphExecDestroy(GraphProgram program) {
  delete program;
  return Result::success;
}
Result cuGraphLaunch(GraphProgram program, Stream stream) {
  const std::lock_guard lock(state.mutex);
  for (const auto& work : program->works) {
    if (const Result result = enqueue(stream, work); result != Result::success) return result;
  }
  return Result::success;
}

Result cuEventCreate(Event* event, unsigned) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  *event = new EventHandle;
  (*event)->context = current();
  (*event)->context_id = current()->id;
  return Result::success;
}
Result cuEventRecord(Event event, Stream stream) {
  const std::lock_guard lock(state.mutex);
  if (!usable(event) || !usable(stream)) return kInvalidHandle;
  event->stream = stream;
  event->mark = stream->enqueued;
  event->polls = 0;
  return Result::success;
}
Result cuEventQuery(Event event) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  if (!usable(event) || event->stream == nullptr) return kInvalidHandle;
  if (event->stream->completed < event->mark && ++event->polls < kPollsBeforeDone) {
    return Result::not_ready;
  }
  run_until(*event->stream, event->mark);
  return Result::success;
}

Result cuIpcGetMemHandle(IpcHandle* handle, DevicePointer address) {
  const std::lock_guard lock(state.mutex);
  const auto entry = find(static_cast<std::uintptr_t>(address));
  if (entry == state.allocations.end() || entry->second.context == nullptr ||
      entry->second.managed || entry->second.opened || entry->first != address) {
    return Result::invalid_value;
  }
  const FakeIpcHandle content{getpid(), entry->second.file, entry->second.size_bytes, entry->first,
                              entry->second.buffer_id};
  std::memset(handle->bytes, 0, sizeof handle->bytes);
  std::memcpy(handle->bytes, &content, sizeof content);
  return Result::success;
}
Result cuIpcOpenMemHandle_v2(DevicePointer* address, IpcHandle handle, unsigned flags) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  FakeIpcHandle content;
  std::memcpy(&content, handle.bytes, sizeof content);
  if (flags != kIpcLazyEnablePeerAccess) return Result::invalid_value;
  if (content.process == getpid()) return Result::invalid_context;
  if (is_covered(content)) return Result::already_mapped;
  Allocation allocation;
  allocation.theirs = content;
  allocation.context = current();
  allocation.device = current()->device;
  allocation.opened = true;
  return open_theirs(content, allocation, address);
}
Result cuIpcCloseMemHandle(DevicePointer address) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  return release(
      static_cast<std::uintptr_t>(address), [](const Allocation& found) { return found.opened; },
      Result::invalid_value);
}

Result cuCtxEnablePeerAccess(Context peer, unsigned flags) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  if (flags != 0 || peer == nullptr || !peer->alive) return Result::invalid_value;
  if (peer->device == current()->device) return kInvalidDevice;
  return peers.emplace(current()->id, peer->id).second ? Result::success
                                                       : Result::peer_access_already_enabled;
}

}  // extern "C"
// NOLINTEND

// What is in fake_cuda_launch.cpp and fake_cuda_share.cpp.
extern "C" {

unsigned fake_cuda_turns() { return accord::device::cuda::state.turns; }
Result cuModuleLoadData(Module*, const void*);
Result cuModuleGetFunction(Function*, Module, const char*);
Result cuLaunchKernel(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, Stream, void**, void**);
Result cuMemRetainAllocationHandle(MemoryHandle*, void*);
Result cuMemRelease(MemoryHandle);
Result cuMemExportToShareableHandle(void*, MemoryHandle, HandleType, unsigned long long);
Result cuMemImportFromShareableHandle(MemoryHandle*, void*, HandleType);
Result cuMemMap(DevicePointer, std::size_t, std::size_t, MemoryHandle, unsigned long long);
Result cuMemUnmap(DevicePointer, std::size_t);
Result cuMemSetAccess(DevicePointer, std::size_t, const AccessDescription*, std::size_t);
Result cuMemAddressReserve(DevicePointer*, std::size_t, std::size_t, DevicePointer,
                           unsigned long long);
Result cuMemAddressFree(DevicePointer, std::size_t);
Result cuMemPoolExportToShareableHandle(void*, Pool, HandleType, unsigned long long);
Result cuMemPoolImportFromShareableHandle(Pool*, void*, HandleType, unsigned long long);
Result cuMemPoolExportPointer(PoolPointer*, DevicePointer);
Result cuMemPoolImportPointer(DevicePointer*, Pool, PoolPointer*);
Result cuMemPoolSetAccess(Pool, const AccessDescription*, std::size_t);
Result cuMemPoolDestroy(Pool);
}

// The fake has the very types that the loader gives to what it finds.
#define CUDA_FUNCTION(member, symbol, parameters) \
  static_assert(std::is_same_v<decltype(&::symbol), Result(*) parameters>);
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION
