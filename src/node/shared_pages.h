// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Pages of host memory for the words by which kernels, their hosts and other processes of the node
// tell each other how far they are. Made and page-locked once for many users, who get slots of
// them: to page-lock memory takes a hundred microseconds, and a driver may let it wait for kernels.
// Knows no MPI and no vendor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/descriptor.h"

namespace accord::node {

class SharedPages {
 public:
  SharedPages() = default;
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  // Zero at first.
  Status make(std::size_t size_bytes);
  // Another process's, by their descriptor.
  Status map(const Descriptor& descriptor);
  // Lets the devices of a runtime reach them; once is as good as more often.
  Status pin(device::DeviceRuntime& runtime);
  bool pinned() const noexcept { return pinned_by_.load(std::memory_order_acquire) != nullptr; }

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  const Descriptor& descriptor() const noexcept { return descriptor_; }
  // All have it.
  void close_descriptor() noexcept { descriptor_.close(); }

 private:
  Status map_pages(int descriptor);

  Descriptor descriptor_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  std::mutex pin_mutex_;
  std::atomic<device::DeviceRuntime*> pinned_by_{nullptr};
};

class PageShelf;

// A piece of pages of this process, page-aligned; goes back to its shelf when the handle dies.
class PageSlot {
 public:
  PageSlot() = default;
  ~PageSlot();
  PageSlot(PageSlot&& other) noexcept { swap(other); }
  PageSlot& operator=(PageSlot&& other) noexcept {
    PageSlot taken(std::move(other));
    swap(taken);
    return *this;
  }
  PageSlot(const PageSlot&) = delete;
  PageSlot& operator=(const PageSlot&) = delete;

  std::byte* data() const noexcept { return pages_->data() + offset_bytes_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  std::size_t offset_bytes() const noexcept { return offset_bytes_; }
  const std::shared_ptr<SharedPages>& pages() const noexcept { return pages_; }
  // Which of the shelf's pages it is of.
  std::uint32_t pages_number() const noexcept { return pages_number_; }
  // Nobody gets the slot again before this word, which lies in it, is other than zero.
  void hold_until(const std::atomic<std::uint32_t>& word) noexcept { released_ = &word; }

 private:
  friend class PageShelf;
  void swap(PageSlot& other) noexcept;

  PageShelf* shelf_ = nullptr;
  std::shared_ptr<SharedPages> pages_;
  std::uint32_t pages_number_ = 0;
  std::size_t offset_bytes_ = 0;
  std::size_t size_bytes_ = 0;
  const std::atomic<std::uint32_t>* released_ = nullptr;
};

// Thread-safe; outlives its slots. Pages are never given back.
class PageShelf {
 public:
  // Zero at first. Its size is rounded up to pages.
  Status take(std::size_t size_bytes, PageSlot& slot);

 private:
  friend class PageSlot;
  static constexpr std::size_t kPagesBytes = std::size_t{512} << 10;

  void put_back(PageSlot slot) noexcept;
  bool take_idle(std::size_t size_bytes, PageSlot& slot);

  std::mutex mutex_;
  std::vector<PageSlot> idle_;
  std::shared_ptr<SharedPages> newest_;
  std::uint32_t newest_number_ = 0;
  std::size_t used_bytes_ = 0;  // of the newest
};

}  // namespace accord::node
