// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/share.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/config.h"

namespace accord::device::level_zero {
namespace {

// What ExportedMemory::bytes holds; the descriptor travels beside it.
struct Handle {
  static constexpr std::uint64_t kMagic = 0x3165'7a64'726f'6363ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t size_bytes = 0;
  ze_ipc_mem_handle_t ipc{};
};

ze_context_handle_t context_of(const PointerInfo& info) {
  return static_cast<ze_context_handle_t>(const_cast<void*>(info.context));
}

// On Linux a handle begins with the number of a descriptor, which means nothing to another process:
// there the number that it has arrived under takes its place.
int descriptor_in(const ze_ipc_mem_handle_t& ipc) {
  int descriptor = -1;
  std::memcpy(&descriptor, ipc.data, sizeof descriptor);
  return descriptor;
}

// What lies behind a descriptor of memory; 0 where that cannot be said.
std::size_t bytes_behind(int descriptor) {
  const off_t end = ::lseek(descriptor, 0, SEEK_END);
  return end > 0 ? static_cast<std::size_t>(end) : 0;
}

// More than this beyond the end of an allocation is no padding: the descriptor is of a pool, in
// which the allocation begins anywhere.
constexpr std::size_t kPaddingMax = 64 << 10;

// Maps the allocation; null where it cannot be, or where that would not be its bytes.
std::byte* map(const Driver& driver, const PointerInfo& info) {
  ExportedMemory exported;
  if (!export_allocation(driver, info, exported).ok()) return nullptr;
  void* mapped = MAP_FAILED;
  if (bytes_behind(exported.file_descriptor) - info.size_bytes < kPaddingMax) {
    mapped = ::mmap(nullptr, info.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    exported.file_descriptor, 0);
  }
  ::close(exported.file_descriptor);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

bool is_live(const Driver& driver, ze_context_handle_t context, const void* base,
             std::uint64_t buffer_id) {
  ze_memory_allocation_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
  return driver.memory_get_properties(context, base, &properties, nullptr) == ZE_RESULT_SUCCESS &&
         properties.type != ZE_MEMORY_TYPE_UNKNOWN && properties.id == buffer_id;
}

}  // namespace

Status export_allocation(const Driver& driver, const PointerInfo& info, ExportedMemory& exported) {
  ze_context_handle_t context = context_of(info);
  Handle handle;
  handle.size_bytes = info.size_bytes;
  ACCORD_TRY(
      status_of(driver.ipc_get_handle(context, info.base, &handle.ipc), symbol::ipc_get_handle));
  const int descriptor = ::fcntl(descriptor_in(handle.ipc), F_DUPFD_CLOEXEC, 0);
  if (driver.ipc_put_handle != nullptr) (void)driver.ipc_put_handle(context, handle.ipc);
  if (descriptor < 0 || bytes_behind(descriptor) < info.size_bytes) {
    if (descriptor >= 0) ::close(descriptor);
    return Status(StatusCode::unsupported,
                  "level_zero export: no descriptor of all the memory in its handle");
  }
  exported.bytes.resize(sizeof handle);
  std::memcpy(exported.bytes.data(), &handle, sizeof handle);
  exported.file_descriptor = descriptor;
  return Status();
}

Status OpenedMemory::open(const Driver& driver, const Device& device,
                          const ExportedMemory& exported, void*& pointer) {
  Handle handle;
  handle.magic = 0;
  if (exported.bytes.size() == sizeof handle)
    std::memcpy(&handle, exported.bytes.data(), sizeof handle);
  if (handle.magic != Handle::kMagic)
    return Status(StatusCode::invalid_argument, "level_zero open: no handle of this runtime");
  if (exported.file_descriptor < 0) {
    return Status(StatusCode::invalid_argument, "level_zero open: a handle without its descriptor");
  }
  std::memcpy(handle.ipc.data, &exported.file_descriptor, sizeof exported.file_descriptor);
  void* opened = nullptr;
  ACCORD_TRY(
      status_of(driver.ipc_open_handle(device.context, device.handle, handle.ipc, 0, &opened),
                symbol::ipc_open_handle));
  const std::lock_guard lock(mutex_);
  opened_[opened] = device.context;
  pointer = opened;
  return Status();
}

Status OpenedMemory::close(const Driver& driver, void* pointer) {
  ze_context_handle_t context = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = opened_.find(pointer);
    if (found == opened_.end()) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("level_zero close: {} was not opened here", pointer));
    }
    context = found->second;
    opened_.erase(found);
  }
  return status_of(driver.ipc_close_handle(context, pointer), symbol::ipc_close_handle);
}

bool MappedMemory::copy(const Driver& driver, DeviceRuntime& runtime,
                        std::span<const Copy> copies) {
  if (copies.size() != 1) return false;
  const Copy& copy = copies[0];
  if (copy.rows != 1 || copy.row_bytes == 0 || copy.row_bytes > config().mapped_copy_bytes)
    return false;
  std::byte bytes[kCopyMax];
  if (copy.row_bytes > sizeof bytes ||
      !with_bytes(driver, runtime, copy.src, copy.row_bytes,
                  [&](const std::byte* src) { std::memcpy(bytes, src, copy.row_bytes); })) {
    return false;
  }
  const bool written = with_bytes(driver, runtime, copy.dst, copy.row_bytes,
                                  [&](std::byte* dst) { std::memcpy(dst, bytes, copy.row_bytes); });
  // Mapped device memory may be write-combining: what was written must not stay in the CPU's
  // buffers while the device is told that it is there.
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  return written;
}

template <class Work>
bool MappedMemory::with_bytes(const Driver& driver, DeviceRuntime& runtime, const void* pointer,
                              std::size_t size_bytes, const Work& work) {
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(pointer));
  PointerInfo info;
  if (!runtime.classify(pointer, info) || info.kind == MemoryKind::pinned) {
    work(bytes);
    return true;
  }
  if (info.kind != MemoryKind::device || info.buffer_id == 0) return false;
  const auto offset = static_cast<std::size_t>(bytes - static_cast<std::byte*>(info.base));
  if (offset > info.size_bytes || size_bytes > info.size_bytes - offset) return false;
  const std::lock_guard lock(mutex_);
  std::byte* const base = find(driver, info);
  if (base == nullptr) return false;
  work(base + offset);
  return true;
}

std::byte* MappedMemory::find(const Driver& driver, const PointerInfo& info) {
  if (const auto known = mappings_.find(info.base); known != mappings_.end()) {
    if (known->second.buffer_id == info.buffer_id) return known->second.bytes;
    drop(known);
  }
  if (info.size_bytes > kMappedBytesMax) return nullptr;
  drop_stale(driver);
  while (mappings_.size() >= kMappingsMax ||
         (!mappings_.empty() && mapped_bytes_ + info.size_bytes > kMappedBytesMax)) {
    drop(mappings_.begin());
  }
  const Mapping mapping{.context = context_of(info),
                        .buffer_id = info.buffer_id,
                        .bytes = map(driver, info),
                        .size_bytes = info.size_bytes};
  mappings_.emplace(info.base, mapping);
  if (mapping.bytes != nullptr) mapped_bytes_ += mapping.size_bytes;
  return mapping.bytes;
}

void MappedMemory::drop_stale(const Driver& driver) {
  for (auto next = mappings_.begin(); next != mappings_.end();) {
    const auto mapping = next++;
    if (!is_live(driver, mapping->second.context, mapping->first, mapping->second.buffer_id))
      drop(mapping);
  }
}

void MappedMemory::drop(std::map<const void*, Mapping>::iterator mapping) {
  if (mapping->second.bytes != nullptr) {
    ::munmap(mapping->second.bytes, mapping->second.size_bytes);
    mapped_bytes_ -= mapping->second.size_bytes;
  }
  mappings_.erase(mapping);
}

}  // namespace accord::device::level_zero
