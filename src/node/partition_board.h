// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the two ends of a partitioned request share within a node: pages in which the receiver says
// that it has started a round, and the sender, or a kernel of its, that a transfer has arrived. A
// word that holds the number of the round says yes for that round, so nothing is reset between
// rounds. A receiver whose sender is elsewhere has such pages for itself. Knows no MPI and no
// vendor.
#pragma once

#include <accord/partitioned_layout.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/descriptor.h"

namespace accord::node {

class PartitionBoard {
 public:
  // What the sender says of its side, for good.
  enum class Attached : std::uint32_t {
    no = 0,
    board,   // it looks here, and sends the data as messages
    memory,  // it writes into the receiver's buffer
  };

  PartitionBoard() = default;
  ~PartitionBoard();
  PartitionBoard(const PartitionBoard&) = delete;
  PartitionBoard& operator=(const PartitionBoard&) = delete;

  // By the receiver. The descriptor is closed with the board.
  Status make(std::int32_t transfers);
  const Descriptor& descriptor() const noexcept { return descriptor_; }
  // By the sender, of the receiver's.
  Status map(const Descriptor& descriptor, std::int32_t transfers);
  // Lets the devices of a runtime reach it.
  Status pin(device::DeviceRuntime& runtime);

  bool mapped() const noexcept { return head_ != nullptr; }
  bool pinned() const noexcept { return pinned_by_ != nullptr; }

  // The round that the receiver has started: in all lines once it is in the last one.
  std::uint32_t ready() const noexcept {
    return std::atomic_ref(std::end(head_->ready)[-1].round).load(std::memory_order_acquire);
  }
  void set_ready(std::uint32_t round) noexcept {
    for (accord_partition_line& line : head_->ready)
      std::atomic_ref(line.round).store(round, std::memory_order_release);
  }
  // Once nobody is to be given it any more.
  void close_descriptor() noexcept { descriptor_.close(); }
  std::atomic<Attached>& attached() const noexcept { return head_->attached; }
  std::atomic<std::uint32_t>& arrived(std::size_t transfer) const noexcept {
    return words_[transfer];
  }
  // For kernels.
  const accord_partition_line* ready_lines() const noexcept { return head_->ready; }
  std::uint32_t* arrived_words() const noexcept { return reinterpret_cast<std::uint32_t*>(words_); }

 private:
  // One writer a line.
  struct Head {
    alignas(128) accord_partition_line ready[ACCORD_PARTITION_LINES]{};
    alignas(128) std::atomic<Attached> attached{Attached::no};
  };
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

  Status map_pages(int descriptor, std::int32_t transfers);

  Descriptor descriptor_;
  Head* head_ = nullptr;
  std::atomic<std::uint32_t>* words_ = nullptr;
  std::size_t size_bytes_ = 0;
  device::DeviceRuntime* pinned_by_ = nullptr;
};

}  // namespace accord::node
