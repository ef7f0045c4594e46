// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of the test driver. Device memory is a memfd that is mapped twice: where the program may
// know it but not touch it unless a kernel runs, and where the driver works. A handle for other
// processes begins with the memfd's descriptor, which stays the allocation's own, as with drivers
// before 1.6 of the interface. ACCORD_TEST_ZE_MEMORY=pool: an allocation is a part of something
// larger, =spread: one descriptor does not hold all of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "driver.h"

namespace accord::test::level_zero {

Allocation::~Allocation() {
  if (alias != nullptr && alias != user) ::munmap(alias, mapped_bytes);
  if (user != nullptr) ::munmap(user, mapped_bytes);
  if (descriptor >= 0) ::close(descriptor);
}

std::shared_ptr<Allocation> find_allocation(const void* address) {
  auto* const byte = static_cast<std::byte*>(const_cast<void*>(address));
  auto next = state().allocations.upper_bound(byte);
  if (next == state().allocations.begin()) return nullptr;
  const std::shared_ptr<Allocation>& found = std::prev(next)->second;
  return static_cast<std::size_t>(byte - found->user) < found->size_bytes ? found : nullptr;
}

bool reaches(const Device& device, ze_kernel_indirect_access_flags_t access,
             const Allocation& allocation) {
  if (allocation.type == ZE_MEMORY_TYPE_HOST)
    return (access & ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST) != 0;
  if (allocation.type == ZE_MEMORY_TYPE_SHARED)
    return (access & ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED) != 0;
  const auto& residence = allocation.residence;
  if (std::find(residence.begin(), residence.end(), &device) != residence.end()) return true;
  const Device* const owner = allocation.device;
  return (access & ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE) != 0 &&
         (owner == &device || (owner->is_tile && device.number == 0));
}

// Only device memory is kept from the CPU.
OpenedToKernels::OpenedToKernels(const Device& device, ze_kernel_indirect_access_flags_t access) {
  const std::lock_guard lock(state().mutex);
  for (const auto& [address, allocation] : state().allocations) {
    if (allocation->alias == allocation->user || !reaches(device, access, *allocation)) continue;
    if (allocation->kernels++ == 0)
      ::mprotect(allocation->user, allocation->mapped_bytes, PROT_READ | PROT_WRITE);
    opened_.push_back(allocation);
  }
}

OpenedToKernels::~OpenedToKernels() {
  const std::lock_guard lock(state().mutex);
  for (const std::shared_ptr<Allocation>& allocation : opened_) {
    if (--allocation->kernels == 0)
      ::mprotect(allocation->user, allocation->mapped_bytes, PROT_NONE);
  }
  opened_.clear();
}

namespace {

constexpr std::size_t kPageBytes = 4096;

constexpr std::size_t kPoolBytes = 1 << 20;

bool memory_is(std::string_view what) {
  static const char* asked = std::getenv("ACCORD_TEST_ZE_MEMORY");
  return asked != nullptr && what == asked;
}

std::byte* map(std::size_t size_bytes, int protection, int flags, int descriptor,
               std::size_t offset_bytes) {
  void* mapped =
      ::mmap(nullptr, size_bytes, protection, flags, descriptor, static_cast<off_t>(offset_bytes));
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Maps what the descriptor holds and enters the allocation.
ze_result_t enter(std::shared_ptr<Allocation> made, void** pointer) {
  const bool on_device = made->type == ZE_MEMORY_TYPE_DEVICE;
  made->alias = map(made->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->descriptor,
                    made->offset_bytes);
  made->user = on_device ? map(made->mapped_bytes, PROT_NONE, MAP_SHARED, made->descriptor,
                               made->offset_bytes)
                         : made->alias;
  if (made->alias == nullptr || made->user == nullptr) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  const std::lock_guard lock(state().mutex);
  made->id = ++state().last_id;
  *pointer = made->user;
  state().allocations.emplace(made->user, std::move(made));
  return ZE_RESULT_SUCCESS;
}

ze_result_t allocate(ze_context_handle_t context, ze_memory_type_t type, std::size_t size_bytes,
                     ze_device_handle_t device, void** pointer) {
  auto made = std::make_shared<Allocation>();
  {
    const std::lock_guard lock(state().mutex);
    made->device = find<Device>(device, Object::Kind::device);
    if (find_object(context, Object::Kind::context) == nullptr ||
        (device != nullptr && made->device == nullptr)) {
      return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    }
  }
  if (size_bytes == 0) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
  made->type = type;
  made->size_bytes = size_bytes;
  made->mapped_bytes = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  made->descriptor = ::memfd_create("level-zero-test-memory", MFD_CLOEXEC);
  if (memory_is("pool")) made->offset_bytes = kPoolBytes / 2;
  const std::size_t whole_bytes = made->mapped_bytes + (made->offset_bytes == 0 ? 0 : kPoolBytes);
  if (made->descriptor < 0 || ::ftruncate(made->descriptor, static_cast<off_t>(whole_bytes)) != 0) {
    return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  return enter(std::move(made), pointer);
}

ze_result_t allocate_device(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* on,
                            std::size_t size_bytes, std::size_t, ze_device_handle_t device,
                            void** pointer) {
  if (on->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  // A tile's memory is what it says of its device's.
  return allocate(context, ZE_MEMORY_TYPE_DEVICE, size_bytes, device, pointer);
}

ze_result_t allocate_shared(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* on,
                            const ze_host_mem_alloc_desc_t* and_on, std::size_t size_bytes,
                            std::size_t, ze_device_handle_t device, void** pointer) {
  if (on->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC ||
      and_on->stype != ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC) {
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  return allocate(context, ZE_MEMORY_TYPE_SHARED, size_bytes, device, pointer);
}

ze_result_t allocate_host(ze_context_handle_t context, const ze_host_mem_alloc_desc_t* on,
                          std::size_t size_bytes, std::size_t, void** pointer) {
  if (on->stype != ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  return allocate(context, ZE_MEMORY_TYPE_HOST, size_bytes, nullptr, pointer);
}

// A job that still uses the allocation keeps it: its owner cannot tell, but the job ends the
// process when it finds the address gone.
ze_result_t release(void* pointer, bool imported) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().allocations.find(static_cast<std::byte*>(pointer));
  if (found == state().allocations.end() || found->second->imported != imported)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  state().allocations.erase(found);
  return ZE_RESULT_SUCCESS;
}

ze_result_t free_memory(ze_context_handle_t, void* pointer) { return release(pointer, false); }
ze_result_t close_handle(ze_context_handle_t, const void* pointer) {
  return release(const_cast<void*>(pointer), true);
}

ze_result_t get_properties(ze_context_handle_t context, const void* pointer,
                           ze_memory_allocation_properties_t* properties,
                           ze_device_handle_t* device) {
  const std::lock_guard lock(state().mutex);
  if (find_object(context, Object::Kind::context) == nullptr)
    return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (properties->stype != ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  const std::shared_ptr<Allocation> found = find_allocation(pointer);
  properties->type = found == nullptr ? ZE_MEMORY_TYPE_UNKNOWN : found->type;
  properties->id = found == nullptr ? 0 : found->id;
  properties->pageSize = kPageBytes;
  if (device != nullptr)
    *device = reinterpret_cast<ze_device_handle_t>(found == nullptr ? nullptr : found->device);
  return ZE_RESULT_SUCCESS;
}

ze_result_t get_range(ze_context_handle_t, const void* pointer, void** base,
                      std::size_t* size_bytes) {
  const std::lock_guard lock(state().mutex);
  const std::shared_ptr<Allocation> found = find_allocation(pointer);
  if (found == nullptr) return ZE_RESULT_ERROR_UNKNOWN;
  if (base != nullptr) *base = found->user;
  if (size_bytes != nullptr) *size_bytes = found->size_bytes;
  return ZE_RESULT_SUCCESS;
}

// What a handle holds; the size travels in it, since a memfd is whole pages.
struct Handle {
  int descriptor;
  std::uint64_t offset_bytes;
  std::uint64_t size_bytes;
};

// The first of several descriptors, which holds one page.
int part_of_memory() {
  static const int part = [] {
    const int made = ::memfd_create("level-zero-test-part", MFD_CLOEXEC);
    if (::ftruncate(made, kPageBytes) != 0) fail("no memory for a part");
    return made;
  }();
  return part;
}
static_assert(sizeof(Handle) <= ZE_MAX_IPC_HANDLE_SIZE);

ze_result_t get_handle(ze_context_handle_t, const void* pointer, ze_ipc_mem_handle_t* handle) {
  const std::lock_guard lock(state().mutex);
  const std::shared_ptr<Allocation> found = find_allocation(pointer);
  if (found == nullptr || found->user != pointer) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (found->type != ZE_MEMORY_TYPE_DEVICE || found->imported)
    return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  const Handle made{.descriptor = memory_is("spread") ? part_of_memory() : found->descriptor,
                    .offset_bytes = found->offset_bytes,
                    .size_bytes = found->size_bytes};
  *handle = {};
  std::memcpy(handle->data, &made, sizeof made);
  return ZE_RESULT_SUCCESS;
}

ze_result_t open_handle(ze_context_handle_t, ze_device_handle_t device, ze_ipc_mem_handle_t handle,
                        ze_ipc_memory_flags_t, void** pointer) {
  Handle asked{};
  std::memcpy(&asked, handle.data, sizeof asked);
  struct stat file {};
  if (::fstat(asked.descriptor, &file) != 0 || asked.size_bytes == 0 ||
      asked.offset_bytes + asked.size_bytes > static_cast<std::uint64_t>(file.st_size)) {
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  auto made = std::make_shared<Allocation>();
  made->type = ZE_MEMORY_TYPE_DEVICE;
  made->imported = true;
  made->size_bytes = static_cast<std::size_t>(asked.size_bytes);
  made->mapped_bytes = (made->size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  made->offset_bytes = static_cast<std::size_t>(asked.offset_bytes);
  made->descriptor = ::fcntl(asked.descriptor, F_DUPFD_CLOEXEC, 0);
  {
    const std::lock_guard lock(state().mutex);
    made->device = find<Device>(device, Object::Kind::device);
  }
  if (made->device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  return enter(std::move(made), pointer);
}

}  // namespace

void fill(ze_mem_dditable_t& table) {
  table.pfnAllocDevice = Entry<"zeMemAllocDevice", allocate_device>::call;
  table.pfnAllocShared = Entry<"zeMemAllocShared", allocate_shared>::call;
  table.pfnAllocHost = Entry<"zeMemAllocHost", allocate_host>::call;
  table.pfnFree = Entry<"zeMemFree", free_memory>::call;
  table.pfnGetAllocProperties = Entry<"zeMemGetAllocProperties", get_properties>::call;
  table.pfnGetAddressRange = Entry<"zeMemGetAddressRange", get_range>::call;
  table.pfnGetIpcHandle = Entry<"zeMemGetIpcHandle", get_handle>::call;
  table.pfnOpenIpcHandle = Entry<"zeMemOpenIpcHandle", open_handle>::call;
  table.pfnCloseIpcHandle = Entry<"zeMemCloseIpcHandle", close_handle>::call;
}

}  // namespace accord::test::level_zero
