// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The window memory of one rank as this process reaches it: its own, or a peer's of the node that
// is open here. Offsets count from the start of the window; of a dynamic window they are addresses.
// All is done when a function returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "base/status.h"
#include "device/direct_work.h"
#include "device/reduction.h"
#include "rma/pieces.h"
#include "rma/words.h"

namespace accord::rma {

// What an accumulate does to each element, in numbers that are equal on all ranks.
struct Update {
  static constexpr std::uint32_t kReplace = 1000;
  static constexpr std::uint32_t kNoOp = 1001;
  std::uint32_t op = 0;
  std::uint32_t type = 0;           // of an element
  std::uint32_t element_bytes = 1;  // without gaps
  // By which a device does it with the same result; none: it cannot.
  device::ReduceOp device_op = device::ReduceOp::none;
  device::Element element = device::Element::none;
};

// Combines packed elements: inout = in op inout. The host MPI's own arithmetic.
using Combine = Status (*)(const Update& update, const std::byte* in, std::byte* inout,
                           std::size_t size_bytes);

// What a rank has attached to its part of a dynamic window. Thread-safe.
class Attached {
 public:
  void add(const void* base, std::uint64_t size_bytes);
  bool remove(const void* base);
  Status check(std::span<const Piece> pieces) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> sizes_;  // by address
};

class Target {
 public:
  // Bytes that an update moves at a time.
  static constexpr std::size_t kUpdateBytes = std::size_t{1} << 20;
  static constexpr std::uint64_t kAnySize = ~std::uint64_t{0};

  Target() = default;
  // `attached`: of this rank's part of a dynamic window, else null. `size_bytes`: of a window whose
  // origins are not believed.
  Target(Place memory, Words* words, int own_rank, const LifeLines* lines, Combine combine,
         const Attached* attached = nullptr, std::uint64_t size_bytes = kAnySize)
      : memory_(memory),
        words_(words),
        own_rank_(own_rank),
        lines_(lines),
        combine_(combine),
        attached_(attached),
        size_bytes_(size_bytes) {}

  // Who does short updates on this memory by a kernel, if there is somebody.
  void use_worker(device::DirectWorker* worker) noexcept { worker_ = worker; }

  const Place& memory() const noexcept { return memory_; }
  Words& words() const noexcept { return *words_; }
  bool has_words() const noexcept { return words_ != nullptr; }

  Status put(std::span<const Piece> pieces, const Place& origin,
             std::span<const Piece> origin_pieces) const {
    ACCORD_TRY(check(pieces));
    return move(memory_, pieces, origin, origin_pieces);
  }
  // Where a run lies, for whoever else moves it.
  Status locate(const Piece& run, std::byte*& start) const;
  Status get(std::span<const Piece> pieces, const Place& result,
             std::span<const Piece> result_pieces) const {
    ACCORD_TRY(check(pieces));
    return move(result, result_pieces, memory_, pieces);
  }
  // By a kernel that is on the device already, where it reaches both ends and has nothing else to
  // do: `done`. No origin: nothing is read there; no compare or result: null.
  Status update_at_once(const Update& update, const Piece& elements, const End& origin,
                        const End* compare, const End* result, bool& done) const;
  // `in` and `result` are packed elements in host memory; no result: null. At most kUpdateBytes.
  Status update(const Update& update, std::span<const Piece> pieces, const std::byte* in,
                std::byte* result) const;
  // The same by a kernel, on elements of the origin that lie on a device of this process. Neither
  // end has gaps.
  bool can_reduce(const Update& update, std::span<const Piece> pieces, const Place& origin,
                  std::span<const Piece> origin_pieces) const;
  Status reduce(const Update& update, const Piece& elements, const Place& origin,
                const Piece& origin_elements) const;
  Status compare_and_swap(const Piece& element, const std::byte* in, const std::byte* compare,
                          std::byte* result) const;

 private:
  Status check(std::span<const Piece> pieces) const;

  Place memory_;
  Words* words_ = nullptr;
  int own_rank_ = 0;
  const LifeLines* lines_ = nullptr;
  Combine combine_ = nullptr;
  const Attached* attached_ = nullptr;
  device::DirectWorker* worker_ = nullptr;
  std::uint64_t size_bytes_ = kAnySize;
};

}  // namespace accord::rma
