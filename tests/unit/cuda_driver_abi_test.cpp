// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Holds device/cuda/driver.h against NVIDIA's cuda.h. Nothing runs: compiling is the test.
#include <cuda.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "cuda_program.h"
#include "device/cuda/driver.h"

namespace accord::device::cuda {
namespace {

// Whether both types travel alike through a call: pointers, integers and enumerations by size,
// structures by size and alignment.
template <class Ours, class Theirs>
constexpr bool same_in_calls() {
  constexpr bool sizes = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
  constexpr bool pointers = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
  constexpr bool classes = std::is_class_v<Ours> == std::is_class_v<Theirs>;
  constexpr bool numbers = (std::is_integral_v<Ours> || std::is_enum_v<Ours>) ==
                           (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
  return sizes && pointers && classes && numbers;
}

// Pointers to data must point to things of one size, so that the driver writes what we gave room
// for.
template <class Ours, class Theirs>
constexpr bool same_parameter() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using Target = std::remove_pointer_t<Ours>;
    using TheirTarget = std::remove_pointer_t<Theirs>;
    constexpr bool opaque = std::is_void_v<Target> || std::is_void_v<TheirTarget> ||
                            std::is_class_v<Target> || std::is_class_v<TheirTarget>;
    if constexpr (opaque) {
      return std::is_void_v<Target> == std::is_void_v<TheirTarget> &&
             std::is_class_v<Target> == std::is_class_v<TheirTarget>;
    } else {
      return same_parameter<Target, TheirTarget>();
    }
  } else {
    return same_in_calls<Ours, Theirs>();
  }
}

template <class Ours, class Theirs>
struct SameFunction : std::false_type {};
template <class OurResult, class... OurParameters, class TheirResult, class... TheirParameters>
requires(sizeof...(OurParameters) ==
         sizeof...(TheirParameters)) struct SameFunction<OurResult (*)(OurParameters...),
                                                         TheirResult (*)(TheirParameters...)>
    : std::bool_constant<same_in_calls<OurResult, TheirResult>() &&
                         (same_parameter<OurParameters, TheirParameters>() && ...)> {
};

// The name as written, and as cuda.h has it after mapping it to a version: they must not differ.
#define ACCORD_NAME(symbol) #symbol
#define ACCORD_MAPPED_NAME(symbol) ACCORD_NAME(symbol)

#define CUDA_FUNCTION(member, symbol, parameters)                                             \
  static_assert(SameFunction<decltype(Driver::member), decltype(&::symbol)>::value, #symbol); \
  static_assert(std::string_view(#symbol) == ACCORD_MAPPED_NAME(symbol), #symbol);
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION

template <class Ours, class Theirs>
constexpr bool same_value(Ours ours, Theirs theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

static_assert(same_value(Result::success, CUDA_SUCCESS));
static_assert(same_value(Result::invalid_value, CUDA_ERROR_INVALID_VALUE));
static_assert(same_value(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(same_value(Result::not_initialized, CUDA_ERROR_NOT_INITIALIZED));
static_assert(same_value(Result::deinitialized, CUDA_ERROR_DEINITIALIZED));
static_assert(same_value(Result::no_device, CUDA_ERROR_NO_DEVICE));
static_assert(same_value(Result::invalid_context, CUDA_ERROR_INVALID_CONTEXT));
static_assert(same_value(Result::already_mapped, CUDA_ERROR_ALREADY_MAPPED));
static_assert(same_value(Result::not_ready, CUDA_ERROR_NOT_READY));
static_assert(same_value(Result::peer_access_already_enabled,
                         CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED));
static_assert(same_value(Result::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED));
static_assert(same_value(Result::host_memory_not_registered,
                         CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
static_assert(same_value(Result::not_permitted, CUDA_ERROR_NOT_PERMITTED));
static_assert(same_value(Result::not_supported, CUDA_ERROR_NOT_SUPPORTED));

static_assert(same_value(MemoryType::host, CU_MEMORYTYPE_HOST));
static_assert(same_value(MemoryType::device, CU_MEMORYTYPE_DEVICE));
static_assert(same_value(MemoryType::array, CU_MEMORYTYPE_ARRAY));
static_assert(same_value(MemoryType::unified, CU_MEMORYTYPE_UNIFIED));

static_assert(same_value(PointerAttribute::context, CU_POINTER_ATTRIBUTE_CONTEXT));
static_assert(same_value(PointerAttribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
static_assert(same_value(PointerAttribute::device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER));
static_assert(same_value(PointerAttribute::sync_memory_operations,
                         CU_POINTER_ATTRIBUTE_SYNC_MEMOPS));
static_assert(same_value(PointerAttribute::buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID));
static_assert(same_value(PointerAttribute::is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED));
static_assert(same_value(PointerAttribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
static_assert(same_value(PointerAttribute::is_legacy_ipc_capable,
                         CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
static_assert(same_value(PointerAttribute::range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR));
static_assert(same_value(PointerAttribute::range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE));
static_assert(same_value(PointerAttribute::access_flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS));
static_assert(same_value(PointerAttribute::pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE));
static_assert(same_value(PointerAttribute::mapping_size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE));
static_assert(same_value(PointerAttribute::mapping_start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR));
static_assert(same_value(PointerAttribute::memory_block_id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID));

static_assert(same_value(P2pAttribute::performance_rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK));
static_assert(same_value(P2pAttribute::access_supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED));
static_assert(same_value(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL));
static_assert(same_value(CaptureMode::thread_local_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(same_value(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(same_value(CaptureStatus::none, CU_STREAM_CAPTURE_STATUS_NONE));
static_assert(same_value(CaptureStatus::active, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(same_value(kStreamNonBlocking, CU_STREAM_NON_BLOCKING));
static_assert(same_value(kEventDisableTiming, CU_EVENT_DISABLE_TIMING));
static_assert(same_value(kHostAllocatePortable, CU_MEMHOSTALLOC_PORTABLE));
static_assert(same_value(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE));
static_assert(same_value(kManagedAttachGlobal, CU_MEM_ATTACH_GLOBAL));
static_assert(same_value(kIpcLazyEnablePeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));

static_assert(same_value(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE));
static_assert(same_value(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
static_assert(same_value(kAccessReadWrite, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
static_assert(same_value(HandleType::posix_file_descriptor,
                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));

static_assert(sizeof(PoolPointer) == sizeof(CUmemPoolPtrExportData));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(offsetof(AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(offsetof(MemoryLocation, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(test::PhysicalProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(test::PhysicalProperties, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(sizeof(test::PoolProperties) == sizeof(CUmemPoolProps));
static_assert(offsetof(test::PoolProperties, location) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(test::PoolProperties, bytes_max) == offsetof(CUmemPoolProps, maxSize));
static_assert(sizeof(Uuid) == sizeof(CUuuid));
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));

#define ACCORD_SAME_FIELD(ours, theirs)                                     \
  static_assert(offsetof(Copy2d, ours) == offsetof(CUDA_MEMCPY2D, theirs)); \
  static_assert(sizeof(Copy2d::ours) == sizeof(CUDA_MEMCPY2D::theirs))
ACCORD_SAME_FIELD(src_x_bytes, srcXInBytes);
ACCORD_SAME_FIELD(src_y, srcY);
ACCORD_SAME_FIELD(src_type, srcMemoryType);
ACCORD_SAME_FIELD(src_host, srcHost);
ACCORD_SAME_FIELD(src_device, srcDevice);
ACCORD_SAME_FIELD(src_array, srcArray);
ACCORD_SAME_FIELD(src_pitch_bytes, srcPitch);
ACCORD_SAME_FIELD(dst_x_bytes, dstXInBytes);
ACCORD_SAME_FIELD(dst_y, dstY);
ACCORD_SAME_FIELD(dst_type, dstMemoryType);
ACCORD_SAME_FIELD(dst_host, dstHost);
ACCORD_SAME_FIELD(dst_device, dstDevice);
ACCORD_SAME_FIELD(dst_array, dstArray);
ACCORD_SAME_FIELD(dst_pitch_bytes, dstPitch);
ACCORD_SAME_FIELD(width_bytes, WidthInBytes);
ACCORD_SAME_FIELD(height, Height);
static_assert(sizeof(Copy2d) == sizeof(CUDA_MEMCPY2D));

}  // namespace
}  // namespace accord::device::cuda
