// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "device/host/fault.h"
#include "device/host/test_settings.h"
#include "device/memory_file.h"

namespace accord::device {
namespace {

constexpr std::size_t kReservedBytes = std::size_t{256} << 30;
constexpr std::size_t kReservedBytesMin = std::size_t{64} << 20;

std::size_t page_bytes() {
  static const auto size_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size_bytes;
}

std::size_t whole_pages(std::size_t size_bytes) {
  return (size_bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Every allocation is followed by a page that belongs to nobody: one past the end is no device
// address.
std::size_t span_bytes(const HostAllocation& allocation) {
  return allocation.mapped_bytes + page_bytes();
}

Status system_error(const char* call, std::size_t size_bytes) {
  return Status(StatusCode::no_memory, fmt::format("{} bytes of host runtime memory: {}: {}",
                                                   size_bytes, call, std::strerror(errno)));
}

std::byte* map_alias(std::size_t size_bytes, int descriptor) {
  const int flags = MAP_SHARED | MAP_NORESERVE | (descriptor < 0 ? MAP_ANONYMOUS : 0);
  void* alias = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  return alias == MAP_FAILED ? nullptr : static_cast<std::byte*>(alias);
}

}  // namespace

std::size_t host_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
}

HostAllocation::~HostAllocation() {
  // Device memory only: the touchable kinds are mapped in the reservation and unmapped by
  // release().
  if (kind == MemoryKind::device && alias != nullptr) munmap(alias, mapped_bytes);
  if (file_descriptor >= 0) close(file_descriptor);
}

std::uintptr_t AddressRanges::take(std::size_t size_bytes) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < size_bytes) continue;
    const auto [start, available_bytes] = *range;
    free_.erase(range);
    if (available_bytes > size_bytes) free_[start + size_bytes] = available_bytes - size_bytes;
    return start;
  }
  return 0;
}

void AddressRanges::release(std::uintptr_t start, std::size_t size_bytes) {
  const auto next = free_.lower_bound(start);
  auto range = free_.emplace_hint(next, start, size_bytes);
  if (next != free_.end() && start + size_bytes == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range != free_.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == range->first) {
      before->second += range->second;
      free_.erase(range);
    }
  }
}

HostAllocationRef HostArena::find(const void* pointer) const {
  if (!may_own(pointer)) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::shared_lock lock(mutex_);
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return nullptr;
  const auto& [start, allocation] = *std::prev(next);
  return address - start < allocation->size_bytes ? allocation : nullptr;
}

Status HostArena::reserve() {
  for (std::size_t size = kReservedBytes; size >= kReservedBytesMin; size /= 2) {
    void* start =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) continue;
    madvise(start, size, MADV_DONTDUMP);  // a wish only
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    explain_faults(address, size / 2);
    // One page less: what lies just before the first allocation is ours as well, and nobody's.
    device_ranges_.add(address + page_bytes(), size / 2 - page_bytes());
    touchable_ranges_.add(address + size / 2, size / 2);
    // may_own of another thread may see one new and one old value: no harm, find() asks under the
    // lock.
    start_.store(address, std::memory_order_relaxed);
    size_bytes_.store(size, std::memory_order_relaxed);
    return Status();
  }
  return system_error("mmap of the address reservation", kReservedBytesMin);
}

Status HostArena::map_device_memory(HostAllocation& allocation, int imported_descriptor) const {
  // Without a descriptor (too many are open, memfd is forbidden) the memory works; it cannot be
  // exported.
  if (!allocation.imported) {
    allocation.file_descriptor = make_memory_file("accord", allocation.mapped_bytes);
  }
  allocation.alias =
      map_alias(allocation.mapped_bytes,
                allocation.imported ? imported_descriptor : allocation.file_descriptor);
  if (allocation.alias == nullptr) return system_error("mmap", allocation.size_bytes);
  if (!allocation.imported && device_memory_is_touchable() &&
      mmap(allocation.user, allocation.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           allocation.file_descriptor, 0) == MAP_FAILED)
    return system_error("mmap", allocation.size_bytes);
  return Status();
}

Status HostArena::map_touchable_memory(HostAllocation& allocation) const {
  void* mapped = mmap(allocation.user, allocation.mapped_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return system_error("mmap", allocation.size_bytes);
  allocation.alias = allocation.user;
  return Status();
}

// Gives the allocation its address, maps it and makes it known.
Status HostArena::enter(std::shared_ptr<HostAllocation> allocation, int imported_descriptor,
                        void*& pointer) {
  allocation->mapped_bytes = whole_pages(allocation->size_bytes);
  const std::unique_lock lock(mutex_);
  if (!in_use()) ACCORD_TRY(reserve());
  const std::size_t left_bytes = host_memory_bytes() - allocated_bytes_;
  if (!allocation->imported && allocation->mapped_bytes > left_bytes) {
    return Status(StatusCode::no_memory,
                  fmt::format("{} bytes of host runtime memory: {} bytes are left",
                              allocation->size_bytes, left_bytes));
  }
  AddressRanges& ranges = ranges_of(allocation->kind);
  const std::uintptr_t start = ranges.take(span_bytes(*allocation));
  if (start == 0) {
    return Status(StatusCode::no_memory,
                  fmt::format("{} bytes of host runtime address space", allocation->size_bytes));
  }
  allocation->user = reinterpret_cast<std::byte*>(start);
  Status status = allocation->kind == MemoryKind::device
                      ? map_device_memory(*allocation, imported_descriptor)
                      : map_touchable_memory(*allocation);
  if (!status.ok()) {
    ranges.release(start, span_bytes(*allocation));
    return status;
  }
  allocation->buffer_id = ++last_buffer_id_;
  if (!allocation->imported) allocated_bytes_ += allocation->mapped_bytes;
  pointer = allocation->user;
  allocations_.emplace(start, std::move(allocation));
  return Status();
}

Status HostArena::allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) {
  if (size_bytes > host_memory_bytes()) {
    return Status(StatusCode::no_memory,
                  fmt::format("{} bytes of host runtime memory: the machine has {}", size_bytes,
                              host_memory_bytes()));
  }
  auto allocation = std::make_shared<HostAllocation>();
  allocation->device = allocation->home = device;
  allocation->kind = kind;
  allocation->size_bytes = size_bytes;
  return enter(std::move(allocation), -1, pointer);
}

Status HostArena::import(Opening of, int file_descriptor, std::size_t size_bytes, void*& pointer) {
  struct stat file {};
  if (fstat(file_descriptor, &file) != 0) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("descriptor of exported memory: {}", std::strerror(errno)));
  }
  if (!is_memory_file(file_descriptor)) {
    return Status(StatusCode::invalid_argument,
                  "descriptor of exported memory: its owner could truncate it");
  }
  if (file.st_size < 0 || whole_pages(size_bytes) != static_cast<std::size_t>(file.st_size)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("exported memory of {} bytes comes with a file of {} bytes",
                              size_bytes, file.st_size));
  }
  auto allocation = std::make_shared<HostAllocation>();
  allocation->device = of.device;
  allocation->home = of.home;
  allocation->imported = true;
  allocation->size_bytes = size_bytes;
  return enter(std::move(allocation), file_descriptor, pointer);
}

Status HostArena::release(void* pointer, Origin origin) {
  std::shared_ptr<HostAllocation>
      allocation;  // unmaps, if nobody else does, after the lock is gone
  const std::unique_lock lock(mutex_);
  const auto entry = allocations_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (entry == allocations_.end() || entry->second->imported != (origin == Origin::imported)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} is not the start of {} host runtime memory", pointer,
                              origin == Origin::imported ? "opened" : "allocated"));
  }
  allocation = std::move(entry->second);
  allocations_.erase(entry);
  if ((allocation->kind != MemoryKind::device || device_memory_is_touchable()) &&
      mmap(pointer, allocation->mapped_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    // The address stays taken, so nothing else can be mistaken for it.
    return system_error("mmap", allocation->size_bytes);
  }
  if (!allocation->imported) allocated_bytes_ -= allocation->mapped_bytes;
  ranges_of(allocation->kind)
      .release(reinterpret_cast<std::uintptr_t>(pointer), span_bytes(*allocation));
  return Status();
}

}  // namespace accord::device
