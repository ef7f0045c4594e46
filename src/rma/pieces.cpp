// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/pieces.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "device/layout_copy.h"
#include "device/registry.h"
#include "device/staging_pool.h"

namespace accord::rma {

Pieces pieces_of(const core::Segment& segment, std::int64_t shift_bytes) {
  Pieces pieces;
  if (segment.type == nullptr) return pieces;
  core::for_each_piece(
      segment, 0, segment.size_bytes(),
      [&](std::ptrdiff_t offset_bytes, std::size_t, std::size_t length_bytes) {
        const std::int64_t begin = shift_bytes + offset_bytes;
        if (!pieces.empty() &&
            pieces.back().offset_bytes + static_cast<std::int64_t>(pieces.back().length_bytes) ==
                begin) {
          pieces.back().length_bytes += length_bytes;
        } else if (length_bytes != 0) {
          pieces.push_back({begin, length_bytes});
        }
      });
  return pieces;
}

std::uint64_t size_of(std::span<const Piece> pieces) noexcept {
  std::uint64_t size_bytes = 0;
  for (const Piece& piece : pieces) size_bytes += piece.length_bytes;
  return size_bytes;
}

Pieces slice(std::span<const Piece> pieces, std::uint64_t first_bytes, std::uint64_t length_bytes) {
  Pieces cut;
  for (const Piece& piece : pieces) {
    if (length_bytes == 0) break;
    if (first_bytes >= piece.length_bytes) {
      first_bytes -= piece.length_bytes;
      continue;
    }
    const std::uint64_t taken = std::min(piece.length_bytes - first_bytes, length_bytes);
    cut.push_back({piece.offset_bytes + static_cast<std::int64_t>(first_bytes), taken});
    length_bytes -= taken;
    first_bytes = 0;
  }
  return cut;
}

Status Room::take(device::DeviceRuntime* runtime, std::uint64_t size_bytes) {
  if (runtime != nullptr) {
    ACCORD_TRY(
        device::staging_pool().acquire(runtime, static_cast<std::size_t>(size_bytes), staging_));
    data_ = static_cast<std::byte*>(staging_.data());
    return {};
  }
  plain_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(size_bytes)]);
  data_ = plain_.get();
  return data_ != nullptr ? Status() : Status(StatusCode::no_memory, "staging memory");
}

namespace {

using device::PointerInfo;

// One list of copies between two allocations, or host memory.
class Mover {
 public:
  Mover(const PointerInfo& to, const PointerInfo& from) : to_(to), from_(from) {}

  Status add(std::byte* to, const std::byte* from, std::size_t length_bytes) {
    if (length_bytes == 0) return {};
    if (!device::needs_staging(to_) && !device::needs_staging(from_)) {
      std::memcpy(to, from, length_bytes);
      return {};
    }
    list_.append(to, from, length_bytes);
    return {};
  }

  Status end() {
    if (list_.empty()) return {};
    const bool both = device::needs_staging(to_) && device::needs_staging(from_);
    if (both && to_.runtime != from_.runtime) return by_host_memory();
    const PointerInfo& own = device::needs_staging(to_) ? to_ : from_;
    return own.runtime->copy(own.device, list_.copies());
  }

 private:
  // Between devices of two vendors.
  Status by_host_memory() {
    for (const device::Copy& copy : list_.copies()) {
      const std::size_t size_bytes = copy.row_bytes * copy.rows;
      Room packed;
      ACCORD_TRY(packed.take(from_.runtime, size_bytes));
      const device::Copy out{packed.data(), copy.src,       copy.row_bytes,
                             copy.rows,     copy.row_bytes, copy.src_pitch_bytes};
      ACCORD_TRY(from_.runtime->copy(from_.device, {&out, 1}));
      const device::Copy in{copy.dst,  packed.data(),        copy.row_bytes,
                            copy.rows, copy.dst_pitch_bytes, copy.row_bytes};
      ACCORD_TRY(to_.runtime->copy(to_.device, {&in, 1}));
    }
    return {};
  }

  const PointerInfo& to_;
  const PointerInfo& from_;
  device::CopyList list_;
};

}  // namespace

Status move(const Place& to, std::span<const Piece> to_pieces, const Place& from,
            std::span<const Piece> from_pieces) {
  if (to.is_absolute || from.is_absolute) {
    return for_each_common(
        to, to_pieces, from, from_pieces,
        [&](std::byte* in, std::byte* out, std::size_t length_bytes) {
          const PointerInfo in_where = to.is_absolute ? device::classify(in) : to.where;
          const PointerInfo out_where = from.is_absolute ? device::classify(out) : from.where;
          Mover mover(in_where, out_where);
          ACCORD_TRY(mover.add(in, out, length_bytes));
          return mover.end();
        });
  }
  Mover mover(to.where, from.where);
  ACCORD_TRY(for_each_common(to, to_pieces, from, from_pieces,
                             [&](std::byte* in, std::byte* out, std::size_t length_bytes) {
                               return mover.add(in, out, length_bytes);
                             }));
  return mover.end();
}

Status pack(std::byte* packed, const Place& from, std::span<const Piece> pieces) {
  const Piece whole{0, size_of(pieces)};
  return move(Place::host(packed), {&whole, 1}, from, pieces);
}

Status unpack(const Place& to, std::span<const Piece> pieces, const std::byte* packed) {
  const Piece whole{0, size_of(pieces)};
  return move(to, pieces, Place::host(const_cast<std::byte*>(packed)), {&whole, 1});
}

}  // namespace accord::rma
