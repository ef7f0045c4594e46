// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The bytes that a one-sided operation touches at one of its ends, as runs in the order of the
// datatype, and copies between two such ends, wherever they lie. Runs are plain bytes: a target of
// another node gets them in a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/layout.h"
#include "device/device_runtime.h"
#include "device/staging_pool.h"

namespace accord::rma {

struct Piece {
  std::int64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
};
using Pieces = std::vector<Piece>;

// `shift_bytes` is added to each offset. Neighbours are joined.
Pieces pieces_of(const core::Segment& segment, std::int64_t shift_bytes = 0);
std::uint64_t size_of(std::span<const Piece> pieces) noexcept;
// The bytes [first, first + length) of them, in their order.
Pieces slice(std::span<const Piece> pieces, std::uint64_t first_bytes, std::uint64_t length_bytes);

// Where offsets count from, and what is there.
struct Place {
  std::byte* start = nullptr;
  // Whose it is; `device` is the one that reaches it. Not of absolute addresses, where each run is
  // looked at.
  device::PointerInfo where;
  bool is_absolute = false;

  static Place host(void* start) noexcept {
    return {.start = static_cast<std::byte*>(start), .where = {}};
  }
  static Place absolute() noexcept {
    Place place;
    place.is_absolute = true;
    return place;
  }
};

// The bytes of an operation with the rank that begins it.
struct End {
  Place place;
  Pieces pieces;
  // Of what elements they are the first ones, where that is known: kernels follow layouts.
  core::Segment layout = {};
};

// The same with the target, from the start of its window.
struct Extent {
  Pieces pieces;
  core::Segment layout = {};
};

// Host memory for packed bytes: a runtime's fastest, or any where there is none.
class Room {
 public:
  Status take(device::DeviceRuntime* runtime, std::uint64_t size_bytes);
  std::byte* data() const noexcept { return data_; }

 private:
  device::StagingBuffer staging_;
  std::unique_ptr<std::byte[]> plain_;
  std::byte* data_ = nullptr;
};

inline std::byte* address_in(const Place& place, std::int64_t offset_bytes) {
  return core::at(place.start, static_cast<std::ptrdiff_t>(offset_bytes));
}

// Calls visit(to, from, length) for the runs that both ends have in common.
template <class Visit>
Status for_each_common(const Place& to, std::span<const Piece> to_pieces, const Place& from,
                       std::span<const Piece> from_pieces, Visit visit) {
  std::size_t i = 0;
  std::size_t j = 0;
  std::uint64_t to_done = 0;
  std::uint64_t from_done = 0;
  while (i < to_pieces.size() && j < from_pieces.size()) {
    const Piece& in = to_pieces[i];
    const Piece& out = from_pieces[j];
    const std::uint64_t length = std::min(in.length_bytes - to_done, out.length_bytes - from_done);
    ACCORD_TRY(visit(address_in(to, in.offset_bytes + static_cast<std::int64_t>(to_done)),
                     address_in(from, out.offset_bytes + static_cast<std::int64_t>(from_done)),
                     static_cast<std::size_t>(length)));
    to_done += length;
    from_done += length;
    if (to_done == in.length_bytes) to_done = 0, ++i;
    if (from_done == out.length_bytes) from_done = 0, ++j;
  }
  return {};
}

// Copies runs to runs of the same size, and waits for the copies only. The ends do not overlap.
Status move(const Place& to, std::span<const Piece> to_pieces, const Place& from,
            std::span<const Piece> from_pieces);

// The same between runs and their packed form in host memory.
Status pack(std::byte* packed, const Place& from, std::span<const Piece> pieces);
Status unpack(const Place& to, std::span<const Piece> pieces, const std::byte* packed);

}  // namespace accord::rma
