// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The CUDA driver, found at run time: our own declarations of its documented ABI, so that building
// needs no CUDA toolkit and a machine without the driver loads nothing.
// tests/unit/cuda_driver_abi_test.cpp holds them against cuda.h. Called in this folder only,
// whose files work for AMD as well: hip/driver.cpp fills the same table with HIP's functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace accord::device::cuda {

// Names follow cuda.h: CUresult, CUcontext, ...
enum class Result : unsigned {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  no_device = 100,
  invalid_context = 201,
  already_mapped = 208,
  not_ready = 600,
  peer_access_already_enabled = 704,
  context_is_destroyed = 709,
  host_memory_not_registered = 713,
  not_permitted = 800,
  not_supported = 801,
};

using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;  // null: the legacy default stream of the current context
using Event = struct EventHandle*;
using Graph = struct GraphHandle*;
using GraphProgram = struct GraphProgramHandle*;  // CUgraphExec
using Array = struct ArrayHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Pool = struct PoolHandle*;
using MemoryHandle = unsigned long long;

enum class MemoryType : unsigned { none = 0, host = 1, device = 2, array = 3, unified = 4 };

enum class PointerAttribute : unsigned {
  context = 1,
  memory_type = 2,
  device_pointer = 3,
  sync_memory_operations = 6,
  buffer_id = 7,
  is_managed = 8,
  device_ordinal = 9,
  is_legacy_ipc_capable = 10,
  range_start = 11,
  range_size = 12,
  access_flags = 16,
  pool = 17,
  mapping_size = 18,
  mapping_start = 19,
  memory_block_id = 20,
};

enum class DeviceAttribute : unsigned {
  multiprocessors = 16,  // as far as this process may use them (MPS)
  compute_capability_major = 75,
  mps_enabled = 133,  // none in drivers before 12.4
};
enum class P2pAttribute : unsigned {
  performance_rank = 1,
  access_supported = 2,
  native_atomics = 3
};
enum class HandleType : unsigned { posix_file_descriptor = 1 };
enum class CaptureMode : unsigned { global = 0, thread_local_ = 1, relaxed = 2 };
enum class CaptureStatus : unsigned { none = 0, active = 1, invalidated = 2 };

constexpr unsigned kContextSyncMemoryOperations = 0x80;  // CU_CTX_SYNC_MEMOPS
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kHostAllocatePortable = 1;
constexpr unsigned kHostAllocateMapped = 2;
constexpr unsigned kHostRegisterPortable = 1;
constexpr unsigned kManagedAttachGlobal = 1;
constexpr unsigned kIpcLazyEnablePeerAccess = 1;
constexpr unsigned kLocationDevice = 1;
constexpr unsigned kAccessReadWrite = 3;

struct Uuid {
  unsigned char bytes[16];
};

struct IpcHandle {
  unsigned char bytes[64];
};

struct PoolPointer {
  unsigned char bytes[64];
};

struct MemoryLocation {
  unsigned type;
  int id;
};

struct AccessDescription {
  MemoryLocation location;
  unsigned flags;
};

struct Copy2d {
  std::size_t src_x_bytes;
  std::size_t src_y;
  MemoryType src_type;
  const void* src_host;
  DevicePointer src_device;
  Array src_array;
  std::size_t src_pitch_bytes;
  std::size_t dst_x_bytes;
  std::size_t dst_y;
  MemoryType dst_type;
  void* dst_host;
  DevicePointer dst_device;
  Array dst_array;
  std::size_t dst_pitch_bytes;
  std::size_t width_bytes;
  std::size_t height;
};

// The compiled kernels that go with a driver; null: none.
struct KernelImages {
  const void* reductions = nullptr;
  const void* packing = nullptr;
  const void* inbox = nullptr;           // a resident kernel; or
  const void* launched_inbox = nullptr;  // kernels that are launched for each exchange
  const void* partitions = nullptr;
};

struct Driver {
#define CUDA_FUNCTION(member, symbol, parameters) Result(*member) parameters = nullptr;
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION

  // For messages: the runtime, and what it calls the function of that symbol below.
  const char* runtime = "cuda";
  const char* (*own_symbol)(const char* symbol) noexcept = nullptr;  // null: the same
  KernelImages images;
};

// The exported name of each member, for messages.
namespace symbol {
#define CUDA_FUNCTION(member, symbol, parameters) inline constexpr const char* member = #symbol;
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION
}  // namespace symbol

// The driver of this process; null where there is none, or only one too old. The first call looks
// for it: it opens libcuda only where a device file of the vendor exists or libcuda is loaded
// already. Never initialises it.
const Driver* driver() noexcept;

// Why there is none although libcuda is there, or why it shows no device; ok where nothing is
// amiss, or all devices are hidden. Initialises it.
Status problem();

// Whether there is a GPU of NVIDIA, as files tell.
bool device_exists() noexcept;

// Whether the environment does not hide all of them.
bool device_is_visible() noexcept;

// In the place of a function that a driver lacks, or that is not used there.
template <class... Args>
void leave_out(Result (*&member)(Args...)) {
  member = [](Args...) { return Result::not_supported; };
}

inline DevicePointer address_of(const void* pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

// ok for success, else an error that names the call and what the driver calls the result.
Status status_of(const Driver& driver, Result result, const char* call);

}  // namespace accord::device::cuda
