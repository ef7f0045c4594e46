// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Puts and gets of a window that are not done yet, as copies which go together: MPI lets them be
// done as late as the call that completes them. Short ones go by one command of a kernel that stays
// on the device, long ones by copy engines while others are still collected. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/engine.h"
#include "device/direct_work.h"
#include "device/layout_copy.h"
#include "rma/pieces.h"

namespace accord::rma {

// Operations up to this size a kernel does, as many as come. Longer ones follow each other sooner
// by engines (2 x H200, windows of puts of 256 KiB: 154 GB/s by kernels, 118 by engines; of 2 MiB:
// 300 by engines).
inline std::size_t short_bytes() noexcept {
  return std::min(device::direct_copy_bytes(), std::size_t{256} << 10);
}

class Batch {
 public:
  Batch() = default;
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Whether kernels may do short ones: not where they take turns with those of other ranks.
  void use_kernels(bool may) { may_use_kernels_ = may; }

  enum class Direction { put, get };
  // Neither end may change before `finish`; what a batch cannot take is done at once. As many bytes
  // as both have.
  Status add(Direction direction, const End& to, const End& from);
  // Waits until all is done.
  Status finish(core::Engine& engine);

 private:
  static constexpr std::size_t kCopiesMax = device::kDirectCopiesMax;
  // Of short ones, before a kernel begins.
  static constexpr std::size_t kShortBytesMax = std::size_t{4} << 20;
  // Before copy engines begin. More the next time, since they are at work then.
  static constexpr std::size_t kFirstBytes = std::size_t{256} << 10;
  static constexpr std::size_t kNextBytesMax = std::size_t{8} << 20;

  // The allocations of an operation's ends: what lies in the same ones may be joined.
  struct Allocations {
    const void* to = nullptr;
    const void* from = nullptr;
    std::uint64_t to_id = 0;
    std::uint64_t from_id = 0;
    bool is_known = false;
    bool operator==(const Allocations&) const = default;
  };

  Status take(const Place& to, const Place& from, bool& is_taken);
  void collect(const End& to, const End& from);
  bool is_reached(const End& end);
  bool is_full() const;
  std::size_t waiting_rows() const;
  Status issue(bool is_last);
  Status poll(bool& done);

  bool may_use_kernels_ = false;
  std::mutex mutex_;                          // guards what follows
  device::DeviceRuntime* runtime_ = nullptr;  // of all that is not done
  int device_ = -1;
  device::DirectWorker* worker_ = nullptr;  // of that device
  // What is not begun.
  device::CopyBatch waiting_;
  std::size_t waiting_bytes_ = 0;
  bool is_short_ = true;  // all of it, and a kernel reaches it
  bool has_puts_ = false;
  Allocations last_;

  std::size_t enough_bytes_ = kFirstBytes;
  std::vector<device::CopyTicket> begun_;
};

}  // namespace accord::rma
