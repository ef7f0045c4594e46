// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Puts and gets with one target that are not done yet, as copies which go together: MPI lets them
// be done as late as the call that completes them, and a batch costs little more than one copy.
// Long ones are begun at once. Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/engine.h"
#include "device/layout_copy.h"
#include "rma/pieces.h"

namespace accord::rma {

class Batch {
 public:
  Batch() = default;
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Neither end may change before `finish`; what a batch cannot take is done at once.
  Status add(const Place& to, std::span<const Piece> to_pieces, const Place& from,
             std::span<const Piece> from_pieces);
  // Waits until all is done.
  Status finish(core::Engine& engine);

 private:
  static constexpr std::size_t kCopiesMax = 64;
  static constexpr std::size_t kBytesMax = std::size_t{256} << 10;

  Status begin();
  Status poll(bool& done);

  std::mutex mutex_;                          // guards what follows
  device::DeviceRuntime* runtime_ = nullptr;  // of all that is not done
  int device_ = -1;
  device::CopyList waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<device::CopyTicket> begun_;
};

}  // namespace accord::rma
