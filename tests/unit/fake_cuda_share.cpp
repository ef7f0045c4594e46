// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake driver's virtual memory API and exportable pools. Strict as the driver is: sizes are
// whole granules, memory cannot be touched before access is set, only what was made to be exported
// can be, and addresses are given back only when nothing is mapped there.
#include "fake_cuda_share.h"

#include <sys/stat.h>

#include <algorithm>

#include "cuda_program.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace accord::device::cuda;
using accord::test::PhysicalProperties;
using accord::test::PoolProperties;

namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;
constexpr auto kExportable = static_cast<unsigned>(HandleType::posix_file_descriptor);

// What PoolPointer holds.
struct PoolPointerContent {
  unsigned long long pool = 0;
  FakeIpcHandle memory;
};

int descriptor_of(void* handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
}

bool whole_granules(std::size_t size_bytes) {
  return size_bytes != 0 && size_bytes % kGranule == 0;
}

MemoryHandle enter(PhysicalMemory memory) {
  memory.references = 1;
  memory.block_id = ++state.last_id;
  const MemoryHandle handle = ++state.last_id;
  state.physical[handle] = memory;
  return handle;
}

Result drop(MemoryHandle handle) {
  const auto found = state.physical.find(handle);
  if (found == state.physical.end()) return Result::invalid_value;
  if (--found->second.references > 0) return Result::success;
  close(found->second.file);
  state.physical.erase(found);
  return Result::success;
}

// The reservation that all of it is in.
bool is_reserved(std::uintptr_t address, std::size_t size_bytes) {
  const auto next = state.reservations.upper_bound(address);
  if (next == state.reservations.begin()) return false;
  const auto& [start, reservation] = *std::prev(next);
  return address - start + size_bytes <= reservation.size_bytes;
}

bool is_mapped(std::uintptr_t address, std::size_t size_bytes) {
  return std::ranges::any_of(state.allocations, [&](const auto& entry) {
    return entry.first < address + size_bytes && address < entry.first + entry.second.mapped_bytes;
  });
}

// No memory, but the addresses stay taken.
bool clear(std::uintptr_t address, std::size_t size_bytes) {
  return mmap(reinterpret_cast<void*>(address), size_bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

extern "C" {

Result cuMemGetAllocationGranularity(std::size_t* granularity, const PhysicalProperties*,
                                     unsigned) {
  *granularity = kGranule;
  return check_initialised();
}
Result cuMemCreate(MemoryHandle* handle, std::size_t size_bytes,
                   const PhysicalProperties* properties, unsigned long long flags) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_initialised(); result != Result::success) return result;
  if (!whole_granules(size_bytes) || flags != 0 ||
      properties->type != PhysicalProperties::kPinned ||
      properties->location.type != kLocationDevice)
    return Result::invalid_value;
  PhysicalMemory memory;
  memory.file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (ftruncate(memory.file, static_cast<off_t>(size_bytes)) != 0) return Result::out_of_memory;
  memory.size_bytes = size_bytes;
  memory.device = properties->location.id;
  memory.exportable = (properties->handle_types & kExportable) != 0;
  *handle = enter(memory);
  return Result::success;
}
Result cuMemRelease(MemoryHandle handle) {
  const std::lock_guard lock(state.mutex);
  return drop(handle);
}
Result cuMemRetainAllocationHandle(MemoryHandle* handle, void* address) {
  const std::lock_guard lock(state.mutex);
  const auto entry = find(reinterpret_cast<std::uintptr_t>(address));
  if (entry == state.allocations.end() || entry->second.physical == 0) return Result::invalid_value;
  *handle = entry->second.physical;
  ++state.physical.at(*handle).references;
  return Result::success;
}
Result cuMemExportToShareableHandle(void* descriptor, MemoryHandle handle, HandleType type,
                                    unsigned long long flags) {
  const std::lock_guard lock(state.mutex);
  const auto found = state.physical.find(handle);
  if (found == state.physical.end() || !found->second.exportable ||
      type != HandleType::posix_file_descriptor || flags != 0)
    return Result::invalid_value;
  const int copy = dup(found->second.file);
  std::memcpy(descriptor, &copy, sizeof copy);
  return Result::success;
}
Result cuMemImportFromShareableHandle(MemoryHandle* handle, void* descriptor, HandleType type) {
  const std::lock_guard lock(state.mutex);
  struct stat file {};
  if (type != HandleType::posix_file_descriptor || fstat(descriptor_of(descriptor), &file) != 0 ||
      !whole_granules(static_cast<std::size_t>(file.st_size)))
    return Result::invalid_value;
  PhysicalMemory memory;
  memory.file = fcntl(descriptor_of(descriptor), F_DUPFD_CLOEXEC, 0);
  memory.size_bytes = static_cast<std::size_t>(file.st_size);
  *handle = enter(memory);
  return Result::success;
}

Result cuMemAddressReserve(DevicePointer* address, std::size_t size_bytes, std::size_t,
                           DevicePointer, unsigned long long flags) {
  const std::lock_guard lock(state.mutex);
  if (!whole_granules(size_bytes) || flags != 0) return Result::invalid_value;
  void* memory =
      mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Result::out_of_memory;
  *address = address_of(memory);
  state.reservations[reinterpret_cast<std::uintptr_t>(memory)] = {size_bytes, ++state.last_id};
  return Result::success;
}
Result cuMemAddressFree(DevicePointer address, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  const auto found = state.reservations.find(static_cast<std::uintptr_t>(address));
  if (found == state.reservations.end() || found->second.size_bytes != size_bytes ||
      is_mapped(found->first, size_bytes))
    return Result::invalid_value;
  munmap(reinterpret_cast<void*>(address), size_bytes);
  state.reservations.erase(found);
  return Result::success;
}
Result cuMemMap(DevicePointer address, std::size_t size_bytes, std::size_t offset,
                MemoryHandle handle, unsigned long long flags) {
  const std::lock_guard lock(state.mutex);
  const auto start = static_cast<std::uintptr_t>(address);
  const auto found = state.physical.find(handle);
  if (found == state.physical.end() || found->second.size_bytes != size_bytes || offset != 0 ||
      flags != 0 || !is_reserved(start, size_bytes) || is_mapped(start, size_bytes))
    return Result::invalid_value;
  if (mmap(reinterpret_cast<void*>(address), size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
           found->second.file, 0) == MAP_FAILED)
    return Result::out_of_memory;
  ++found->second.references;
  Allocation allocation;
  allocation.size_bytes = allocation.mapped_bytes = size_bytes;
  allocation.device = found->second.device;
  allocation.physical = handle;
  state.allocations[start] = allocation;
  return Result::success;
}
Result cuMemUnmap(DevicePointer address, std::size_t size_bytes) {
  const std::lock_guard lock(state.mutex);
  const auto entry = state.allocations.find(static_cast<std::uintptr_t>(address));
  if (entry == state.allocations.end() || entry->second.physical == 0 ||
      entry->second.size_bytes != size_bytes || !clear(entry->first, size_bytes))
    return Result::invalid_value;
  const MemoryHandle handle = entry->second.physical;
  state.allocations.erase(entry);
  return drop(handle);
}
Result cuMemSetAccess(DevicePointer address, std::size_t size_bytes,
                      const AccessDescription* access, std::size_t count) {
  const std::lock_guard lock(state.mutex);
  const auto entry = state.allocations.find(static_cast<std::uintptr_t>(address));
  if (entry == state.allocations.end() || entry->second.physical == 0 ||
      entry->second.size_bytes != size_bytes)
    return Result::invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    if (access[i].location.type != kLocationDevice || access[i].flags != kAccessReadWrite)
      return Result::invalid_value;
    entry->second.access |= 1u << static_cast<unsigned>(access[i].location.id);
  }
  mprotect(reinterpret_cast<void*>(address), size_bytes, PROT_READ | PROT_WRITE);
  return Result::success;
}

Result cuMemPoolCreate(Pool* pool, const PoolProperties* properties) {
  const std::lock_guard lock(state.mutex);
  *pool = new PoolHandle;
  (*pool)->device = properties->location.id;
  (*pool)->exportable = (properties->handle_types & kExportable) != 0;
  (*pool)->number = static_cast<unsigned long long>(getpid()) << 32 | ++state.last_id;
  (*pool)->file = memfd_create("fake_cuda_pool", MFD_CLOEXEC);
  return pwrite((*pool)->file, &(*pool)->number, sizeof(*pool)->number, 0) == sizeof(*pool)->number
             ? Result::success
             : Result::out_of_memory;
}
Result cuMemPoolDestroy(Pool pool) {
  const std::lock_guard lock(state.mutex);
  if (std::ranges::any_of(state.allocations,
                          [&](const auto& entry) { return entry.second.pool == pool; }))
    return Result::invalid_value;  // the driver waits for them; nobody here shall leave any
  if (pool->file >= 0) close(pool->file);
  delete pool;
  return Result::success;
}
Result cuMemAllocFromPoolAsync(DevicePointer* address, std::size_t size_bytes, Pool pool, Stream) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  if (pool->imported) return Result::invalid_value;
  return allocate_from(*pool, pool->device, size_bytes, address);
}
Result cuMemPoolExportToShareableHandle(void* descriptor, Pool pool, HandleType type,
                                        unsigned long long flags) {
  const std::lock_guard lock(state.mutex);
  if (!pool->exportable || type != HandleType::posix_file_descriptor || flags != 0)
    return Result::invalid_value;
  const int copy = dup(pool->file);
  std::memcpy(descriptor, &copy, sizeof copy);
  return Result::success;
}
Result cuMemPoolImportFromShareableHandle(Pool* pool, void* descriptor, HandleType type,
                                          unsigned long long flags) {
  const std::lock_guard lock(state.mutex);
  unsigned long long number = 0;
  if (type != HandleType::posix_file_descriptor || flags != 0 ||
      pread(descriptor_of(descriptor), &number, sizeof number, 0) != sizeof number)
    return Result::invalid_value;
  *pool = new PoolHandle;
  (*pool)->imported = true;
  (*pool)->number = number;
  return Result::success;
}
Result cuMemPoolSetAccess(Pool pool, const AccessDescription* access, std::size_t count) {
  const std::lock_guard lock(state.mutex);
  for (std::size_t i = 0; i < count; ++i)
    pool->access |= 1u << static_cast<unsigned>(access[i].location.id);
  return Result::success;
}
Result cuMemPoolExportPointer(PoolPointer* pointer, DevicePointer address) {
  const std::lock_guard lock(state.mutex);
  const auto entry = find(static_cast<std::uintptr_t>(address));
  if (entry == state.allocations.end() || entry->first != address ||
      entry->second.pool == nullptr || !entry->second.pool->exportable)
    return Result::invalid_value;
  const PoolPointerContent content{entry->second.pool->number,
                                   {getpid(), entry->second.file, entry->second.size_bytes, 0, 0}};
  std::memset(pointer->bytes, 0, sizeof pointer->bytes);
  std::memcpy(pointer->bytes, &content, sizeof content);
  return Result::success;
}
Result cuMemPoolImportPointer(DevicePointer* address, Pool pool, PoolPointer* pointer) {
  const std::lock_guard lock(state.mutex);
  PoolPointerContent content;
  std::memcpy(&content, pointer->bytes, sizeof content);
  if (!pool->imported || content.pool != pool->number) return Result::invalid_value;
  Allocation allocation;
  allocation.pool = pool;
  allocation.access = pool->access;
  return open_theirs(content.memory, allocation, address);
}

}  // extern "C"
// NOLINTEND
