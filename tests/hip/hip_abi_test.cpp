// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Our declarations of HIP against its own header: that this compiles is the test.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1  // by which HIP 5 knows it
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <type_traits>

#include "device/hip/functions.h"

namespace {

namespace cuda = accord::device::cuda;
namespace hip = accord::device::hip;

// What goes to the same place in a call: numbers of one size, pointers, and bytes by value.
template <class Theirs, class Ours>
constexpr bool kAlike = sizeof(Theirs) == sizeof(Ours) &&
                        alignof(Theirs) <= alignof(std::max_align_t) &&
                        std::is_class_v<Theirs> == std::is_class_v<Ours>;

template <class Theirs, class Ours>
struct SameCall : std::false_type {};
template <class... Theirs, class... Ours>
requires(sizeof...(Theirs) ==
         sizeof...(Ours)) struct SameCall<hipError_t (*)(Theirs...), cuda::Result (*)(Ours...)>
    : std::bool_constant<(kAlike<Theirs, Ours> && ...)> {
};

// Two steps: HIP has the function with just these parameters, and they are those of our table.
#define HIP_TWIN(member, symbol, parameters)                            \
  [[maybe_unused]] hipError_t(*const own_##member) parameters = symbol; \
  static_assert(SameCall<hipError_t(*) parameters, decltype(cuda::Driver::member)>::value, #symbol);
#define HIP_LIKE(member, symbol, parameters)
#define HIP_OWN(member, symbol, parameters)
#define HIP_TEXT(member, symbol)
#include "device/hip/driver.def"
#undef HIP_TWIN
#undef HIP_LIKE
#undef HIP_OWN
#undef HIP_TEXT

// The others, which are declared here and nowhere else, by their parameters in HIP.
#define HIP_CALL(member, symbol, ...)                                                           \
  [[maybe_unused]] hipError_t (*const like_##member)(__VA_ARGS__) = symbol;                     \
  static_assert(SameCall<hipError_t (*)(__VA_ARGS__), decltype(hip::Functions::member)>::value, \
                #symbol);
HIP_CALL(device_get_count, hipGetDeviceCount, int*)
HIP_CALL(device_get_p2p_attribute, hipDeviceGetP2PAttribute, int*, hipDeviceP2PAttr, int, int)
HIP_CALL(context_get_device, hipGetDevice, int*)
HIP_CALL(context_enable_peer_access, hipDeviceEnablePeerAccess, int, unsigned)
HIP_CALL(copy, hipMemcpy, void*, const void*, std::size_t, hipMemcpyKind)
HIP_CALL(copy_async, hipMemcpyAsync, void*, const void*, std::size_t, hipMemcpyKind, hipStream_t)
HIP_CALL(copy_2d_async, hipMemcpy2DAsync, void*, std::size_t, const void*, std::size_t, std::size_t,
         std::size_t, hipMemcpyKind, hipStream_t)
HIP_CALL(ipc_open_handle, hipIpcOpenMemHandle, void**, hipIpcMemHandle_t, unsigned)
HIP_CALL(pointer_get_attributes, hipPointerGetAttributes, hipPointerAttribute_t*, const void*)
HIP_CALL(pointer_get_attribute, hipPointerGetAttribute, void*, hipPointer_attribute, hipDeviceptr_t)
HIP_CALL(set_device, hipSetDevice, int)
HIP_CALL(get_address_range, hipMemGetAddressRange, hipDeviceptr_t*, std::size_t*, hipDeviceptr_t)
HIP_CALL(get_version, hipRuntimeGetVersion, int*)
HIP_CALL(get_last_error, hipGetLastError)

#define SAME(theirs, ours) \
  static_assert(static_cast<unsigned>(theirs) == static_cast<unsigned>(ours))
SAME(hipSuccess, cuda::Result::success);
SAME(hipErrorInvalidValue, cuda::Result::invalid_value);
SAME(hipErrorOutOfMemory, cuda::Result::out_of_memory);
SAME(hipErrorNotInitialized, cuda::Result::not_initialized);
SAME(hipErrorDeinitialized, cuda::Result::deinitialized);
SAME(hipErrorNoDevice, cuda::Result::no_device);
SAME(hipErrorInvalidContext, cuda::Result::invalid_context);
SAME(hipErrorNotReady, cuda::Result::not_ready);
SAME(hipErrorPeerAccessAlreadyEnabled, cuda::Result::peer_access_already_enabled);
SAME(hipErrorContextIsDestroyed, cuda::Result::context_is_destroyed);
SAME(hipErrorHostMemoryNotRegistered, cuda::Result::host_memory_not_registered);
SAME(hipErrorNotSupported, cuda::Result::not_supported);

SAME(hipMemcpyDefault, hip::CopyKind::by_address);
SAME(hipStreamNonBlocking, cuda::kStreamNonBlocking);
SAME(hipEventDisableTiming, cuda::kEventDisableTiming);
SAME(hipHostMallocPortable, cuda::kHostAllocatePortable);
SAME(hipHostMallocMapped, cuda::kHostAllocateMapped);
SAME(hipHostRegisterPortable, cuda::kHostRegisterPortable);
SAME(hipMemAttachGlobal, cuda::kManagedAttachGlobal);
SAME(hipStreamCaptureModeGlobal, cuda::CaptureMode::global);
SAME(hipStreamCaptureModeRelaxed, cuda::CaptureMode::relaxed);
SAME(hipStreamCaptureStatusNone, cuda::CaptureStatus::none);
SAME(hipStreamCaptureStatusActive, cuda::CaptureStatus::active);
SAME(HIP_POINTER_ATTRIBUTE_BUFFER_ID, cuda::PointerAttribute::buffer_id);
// Counted from 0, and from 1 by CUDA.
static_assert(hipDevP2PAttrPerformanceRank + 1 ==
              static_cast<int>(cuda::P2pAttribute::performance_rank));

// The kinds of memory, which HIP 6 has numbered anew: one more than HIP 5 had.
constexpr unsigned kStep = HIP_VERSION_MAJOR >= 6 ? 0 : 1;
static_assert(hipMemoryTypeHost + kStep == 1 && hipMemoryTypeDevice + kStep == 2);

using Facts = hipPointerAttribute_t;
static_assert(sizeof(Facts) == sizeof(hip::PointerFacts));
static_assert(offsetof(Facts, device) == offsetof(hip::PointerFacts, device));
static_assert(offsetof(Facts, devicePointer) == offsetof(hip::PointerFacts, on_device));
static_assert(offsetof(Facts, hostPointer) == offsetof(hip::PointerFacts, on_host));
static_assert(offsetof(Facts, isManaged) == offsetof(hip::PointerFacts, is_managed));
static_assert(offsetof(Facts, allocationFlags) == offsetof(hip::PointerFacts, flags));
static_assert(sizeof(hipIpcMemHandle_t) == sizeof(cuda::IpcHandle));
static_assert(sizeof(hipUUID) == sizeof(cuda::Uuid));

}  // namespace
