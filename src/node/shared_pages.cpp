// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/shared_pages.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "device/memory_file.h"
#include "node/shared_mapping.h"

namespace accord::node {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::size_t in_pages(std::size_t size_bytes) {
  return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

Status from_errno(StatusCode code, const char* what) {
  return {code, fmt::format("shared pages: {}: {}", what, std::strerror(errno))};
}

}  // namespace

SharedPages::~SharedPages() {
  if (auto* const runtime = pinned_by_.load()) runtime->host_unpin(data_);
  if (data_ != nullptr) unmap_shared(data_, size_bytes_);
}

Status SharedPages::make(std::size_t size_bytes) {
  size_bytes_ = in_pages(size_bytes);
  descriptor_ = Descriptor(device::make_memory_file("accord-words", size_bytes_));
  if (!descriptor_.is_open()) return from_errno(StatusCode::no_memory, "memfd_create");
  return map_pages(descriptor_.number());
}

Status SharedPages::map(const Descriptor& descriptor) {
  struct stat of {};
  if (!device::is_memory_file(descriptor.number()))
    return {StatusCode::unsupported, "shared pages: their owner could truncate them"};
  if (::fstat(descriptor.number(), &of) != 0) return from_errno(StatusCode::unsupported, "fstat");
  size_bytes_ = static_cast<std::size_t>(of.st_size);
  return map_pages(descriptor.number());
}

Status SharedPages::map_pages(int descriptor) {
  void* const pages = map_shared(descriptor, size_bytes_);
  if (pages == nullptr) return from_errno(StatusCode::no_memory, "mmap");
  data_ = static_cast<std::byte*>(pages);
  return {};
}

Status SharedPages::pin(device::DeviceRuntime& runtime) {
  if (pinned()) return {};
  const std::lock_guard lock(pin_mutex_);
  if (pinned()) return {};
  ACCORD_TRY(runtime.host_pin(data_, size_bytes_));
  pinned_by_.store(&runtime, std::memory_order_release);
  return {};
}

PageSlot::~PageSlot() {
  if (shelf_ == nullptr) return;
  PageShelf& shelf = *std::exchange(shelf_, nullptr);
  shelf.put_back(std::move(*this));
}

void PageSlot::swap(PageSlot& other) noexcept {
  std::swap(shelf_, other.shelf_);
  std::swap(pages_, other.pages_);
  std::swap(pages_number_, other.pages_number_);
  std::swap(offset_bytes_, other.offset_bytes_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(released_, other.released_);
}

void PageShelf::put_back(PageSlot slot) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(slot));
}

bool PageShelf::take_idle(std::size_t size_bytes, PageSlot& slot) {
  const auto found = std::ranges::find_if(idle_, [&](const PageSlot& one) {
    return one.size_bytes_ == size_bytes &&
           (one.released_ == nullptr || one.released_->load(std::memory_order_acquire) != 0);
  });
  if (found == idle_.end()) return false;
  std::swap(*found, idle_.back());
  slot = std::move(idle_.back());
  idle_.pop_back();
  slot.released_ = nullptr;
  std::memset(slot.data(), 0, slot.size_bytes());
  return true;
}

Status PageShelf::take(std::size_t size_bytes, PageSlot& slot) {
  size_bytes = in_pages(size_bytes);
  PageSlot taken;
  {
    const std::lock_guard lock(mutex_);
    if (!take_idle(size_bytes, taken)) {
      if (newest_ == nullptr || newest_->size_bytes() - used_bytes_ < size_bytes) {
        auto made = std::make_shared<SharedPages>();
        ACCORD_TRY(made->make(std::max(size_bytes, kPagesBytes)));
        newest_ = std::move(made);
        ++newest_number_;
        used_bytes_ = 0;
      }
      taken.pages_ = newest_;
      taken.pages_number_ = newest_number_;
      taken.offset_bytes_ = used_bytes_;
      taken.size_bytes_ = size_bytes;
      used_bytes_ += size_bytes;
    }
    taken.shelf_ = this;
  }
  slot = std::move(taken);
  return {};
}

}  // namespace accord::node
