// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the two ends of a partitioned request share within a node: a slot of the receiver's pages in
// which the receiver says that it has started a round, and the sender, or a kernel of its, that a
// transfer has arrived. A word that holds the number of the round says yes for that round, so
// nothing is reset between rounds. A receiver whose sender is elsewhere has such a slot for itself.
// Knows no MPI and no vendor.
#pragma once

#include <accord/partitioned_layout.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>

#include "base/status.h"
#include "node/shared_pages.h"

namespace accord::node {

class PartitionBoard {
 public:
  enum class End : std::size_t { sender, receiver };

  PartitionBoard() = default;
  ~PartitionBoard();
  PartitionBoard(const PartitionBoard&) = delete;
  PartitionBoard& operator=(const PartitionBoard&) = delete;

  // By the receiver; one that has room for so many transfers is kept.
  Status make(PageShelf& shelf, std::int32_t transfers);
  const PageSlot& slot() const noexcept { return slot_; }
  // From here on the sender may look at it, until it has let go or has said that it cannot.
  void share() noexcept { shared_ = true; }
  void unshare() noexcept { shared_ = false; }
  bool shared() const noexcept { return shared_; }
  // By the sender: the receiver's, at this place of its pages.
  Status map(std::shared_ptr<SharedPages> pages, std::uint64_t offset_bytes,
             std::int32_t transfers);
  // Lets the devices of a runtime reach it.
  Status pin(device::DeviceRuntime& runtime) { return pages_->pin(runtime); }

  bool mapped() const noexcept { return head_ != nullptr; }
  bool pinned() const noexcept { return mapped() && pages_->pinned(); }

  // The round that the receiver has started: in all lines once it is in the last one.
  std::uint32_t ready() const noexcept {
    return std::atomic_ref(std::end(head_->ready)[-1].round).load(std::memory_order_acquire);
  }
  void set_ready(std::uint32_t round) noexcept {
    for (accord_partition_line& line : head_->ready)
      std::atomic_ref(line.round).store(round, std::memory_order_release);
  }
  // By the sender: the first round in which it sends no data as messages; 0: none.
  std::atomic<std::uint32_t>& straight_from() const noexcept { return head_->straight_from; }
  // By either end: the last round that it has given up; 0: none.
  std::atomic<std::uint32_t>& failed(End end) const noexcept {
    return head_->failed[static_cast<std::size_t>(end)].round;
  }
  std::atomic<std::uint32_t>& arrived(std::size_t transfer) const noexcept {
    return words_[transfer];
  }
  // For kernels.
  const accord_partition_line* ready_lines() const noexcept { return head_->ready; }
  std::uint32_t* arrived_words() const noexcept { return reinterpret_cast<std::uint32_t*>(words_); }

 private:
  struct alignas(128) Word {
    std::atomic<std::uint32_t> round{0};
  };
  // One writer a line.
  struct Head {
    alignas(128) accord_partition_line ready[ACCORD_PARTITION_LINES]{};
    Word failed[2];
    alignas(128) std::atomic<std::uint32_t> straight_from{0};
    std::atomic<std::uint32_t> left{0};  // the sender looks and writes here no more
  };
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

  static std::size_t bytes_for(std::int32_t transfers) noexcept {
    return sizeof(Head) + static_cast<std::size_t>(transfers) * sizeof words_[0];
  }
  void lay_out(std::byte* at) noexcept;

  PageSlot slot_;  // of the receiver
  std::shared_ptr<SharedPages> pages_;
  bool shared_ = false;
  Head* head_ = nullptr;
  std::atomic<std::uint32_t>* words_ = nullptr;
};

}  // namespace accord::node
