// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/log.h"
#include "device/cuda/copy.h"

namespace accord::device::cuda {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kPageBytes = 4096;

void* map_pages(std::size_t size_bytes) {
  void* pages =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

}  // namespace

Status HostMemory::allocate(const Driver* driver, std::size_t size_bytes, void*& pointer) {
  const bool small =
      std::has_single_bit(size_bytes) && size_bytes >= kPageBytes && size_bytes < kHugePageBytes;
  if (small && driver != nullptr && cut(*driver, size_bytes, pointer)) return Status();
  return map(driver, size_bytes, pointer);
}

void* HostMemory::take(std::size_t size_bytes) {
  const auto log = static_cast<unsigned>(std::countr_zero(size_bytes));
  const auto most = static_cast<unsigned>(std::countr_zero(kHugePageBytes));
  const std::lock_guard lock(mutex_);
  for (unsigned size = log; size < most; ++size) {
    if (idle_[size].empty()) continue;
    void* const pointer = idle_[size].back();
    idle_[size].pop_back();
    cut_[pointer] = size;
    return pointer;
  }
  return nullptr;
}

void HostMemory::free(const Driver* driver, void* pointer, std::size_t size_bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (const auto entry = cut_.find(pointer); entry != cut_.end()) {
      idle_[entry->second].push_back(pointer);
      cut_.erase(entry);
      return;
    }
  }
  unmap(driver, pointer, size_bytes);
}

bool HostMemory::cut(const Driver& driver, std::size_t size_bytes, void*& pointer) {
  const auto log = static_cast<unsigned>(std::countr_zero(size_bytes));
  const std::lock_guard lock(mutex_);
  if (!idle_[log].empty()) {
    pointer = idle_[log].back();
    idle_[log].pop_back();
  } else {
    if (slab_left_bytes_ < size_bytes && !add_slab(driver)) return false;
    pointer = slab_;
    slab_ += size_bytes;
    slab_left_bytes_ -= size_bytes;
  }
  cut_[pointer] = log;
  return true;
}

Status HostMemory::pin(const Driver* driver, void* pages, std::size_t size_bytes) {
  if (driver == nullptr) return Status(StatusCode::unsupported, "no driver to page-lock memory by");
  ContextScope scope(*driver);
  if (!scope.enter_any())
    return Status(StatusCode::unsupported, "no device in use yet to page-lock memory for");
  return status_of(*driver, driver->host_memory_register(pages, size_bytes, kHostRegisterPortable),
                   symbol::host_memory_register);
}

void HostMemory::unpin(const Driver* driver, void* pages) noexcept {
  if (driver == nullptr) return;
  ContextScope scope(*driver);
  if (scope.enter_any()) (void)driver->host_memory_unregister(pages);
}

// What is left of the old slab goes to the idle lists, its largest pieces first.
bool HostMemory::add_slab(const Driver& driver) {
  ContextScope scope(driver);
  if (!scope.enter_any()) return false;
  // Twice the size holds one aligned huge page.
  auto* pages = static_cast<std::byte*>(map_pages(2 * kHugePageBytes));
  if (pages == nullptr) return false;
  const auto before =
      (kHugePageBytes - reinterpret_cast<std::uintptr_t>(pages) % kHugePageBytes) % kHugePageBytes;
  std::byte* slab = pages + before;
  if (before > 0) munmap(pages, before);
  munmap(slab + kHugePageBytes, kHugePageBytes - before);
  madvise(slab, kHugePageBytes, MADV_HUGEPAGE);
  if (driver.host_memory_register(slab, kHugePageBytes, kHostRegisterPortable) != Result::success) {
    munmap(slab, kHugePageBytes);
    return false;
  }
  while (slab_left_bytes_ >= kPageBytes) {
    const std::size_t piece = std::bit_floor(slab_left_bytes_);
    idle_[static_cast<unsigned>(std::countr_zero(piece))].push_back(slab_);
    slab_ += piece;
    slab_left_bytes_ -= piece;
  }
  slab_ = slab;
  slab_left_bytes_ = kHugePageBytes;
  return true;
}

Status HostMemory::map(const Driver* driver, std::size_t size_bytes, void*& pointer) {
  pointer = map_pages(size_bytes);
  if (pointer == nullptr) {
    return Status(StatusCode::no_memory, fmt::format("{} bytes of host memory: mmap: {}",
                                                     size_bytes, std::strerror(errno)));
  }
  if (size_bytes >= kHugePageBytes) madvise(pointer, size_bytes, MADV_HUGEPAGE);  // pins faster
  if (driver == nullptr) return Status();
  ContextScope scope(*driver);
  if (!scope.enter_any()) return Status();
  Origin origin = Origin::registered;
  Result result = driver->host_memory_register(pointer, size_bytes, kHostRegisterPortable);
  if (result != Result::success) {
    void* pinned = nullptr;
    result = driver->host_memory_allocate(&pinned, size_bytes, kHostAllocatePortable);
    if (result != Result::success) {
      log::debug("staging memory is not page-locked: {}",
                 status_of(*driver, result, symbol::host_memory_allocate).message());
      return Status();
    }
    munmap(pointer, size_bytes);
    pointer = pinned;
    origin = Origin::driver;
  }
  const std::lock_guard lock(mutex_);
  origins_[pointer] = origin;
  return Status();
}

void HostMemory::unmap(const Driver* driver, void* pointer, std::size_t size_bytes) noexcept {
  Origin origin = Origin::plain;
  {
    const std::lock_guard lock(mutex_);
    if (const auto entry = origins_.find(pointer); entry != origins_.end()) {
      origin = entry->second;
      origins_.erase(entry);
    }
  }
  if (origin != Origin::plain && driver != nullptr) {
    ContextScope scope(*driver);
    scope.enter_any();
    if (origin == Origin::driver) {
      driver->host_memory_free(pointer);
      return;
    }
    const Result result = driver->host_memory_unregister(pointer);
    // Pages that the driver still knows must not be unmapped: it would take the next mapping for
    // them.
    if (result != Result::success && result != Result::host_memory_not_registered &&
        result != Result::deinitialized && result != Result::invalid_context &&
        result != Result::context_is_destroyed) {
      log::debug("{} bytes of staging memory are not given back: {}", size_bytes,
                 status_of(*driver, result, symbol::host_memory_unregister).message());
      return;
    }
  }
  munmap(pointer, size_bytes);
}

}  // namespace accord::device::cuda
