// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the bytes of an MPI buffer lie: elements of typemaps (device/typemap.h), and the copies
// that move exactly those bytes. Knows no mpi.h: the shim reads a datatype's typemap off the host
// MPI and hands it over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/layout_copy.h"

namespace accord::core {

using device::CopyBatch;
using device::CopyList;
using device::kPadding;
using device::LayoutCopy;
using device::Run;
using device::Typemap;

// `count` elements of a type, the first at `offset_bytes` from the buffer's address.
struct Segment {
  std::shared_ptr<const Typemap> type;
  std::size_t count = 0;
  std::ptrdiff_t offset_bytes = 0;

  std::size_t size_bytes() const noexcept { return type ? type->size_bytes() * count : 0; }
  std::ptrdiff_t low_bytes() const noexcept;
  std::ptrdiff_t high_bytes() const noexcept;
};

// An address, whatever the base: MPI_BOTTOM is a null pointer, to which nothing may be added.
inline std::byte* at(void* base, std::ptrdiff_t offset_bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) +
                                      static_cast<std::uintptr_t>(offset_bytes));
}

// What moves the bytes [first, first + length) of the packed form of `segment` at `user` to
// contiguous memory at `packed`, or from there.
LayoutCopy packed_copy(const Segment& segment, void* user, std::size_t first_bytes,
                       std::size_t length_bytes, void* packed, LayoutCopy::Direction direction);
// The first of these bytes, as a batch.
CopyBatch packed_copies(const Segment& segment, void* user, std::size_t length_bytes, void* packed,
                        LayoutCopy::Direction direction);
// Where the first bytes of a segment lie, where they are one run; else null.
std::byte* run_of(const Segment& segment, void* user, std::size_t length_bytes);

// The runs of a segment, from its lowest byte on, of no bytes where it is but one; false where they
// are not in nested equal steps.
bool find_steps(const Segment& segment, device::Steps& runs);
// What brings the first bytes of a segment at `user` from where they lie: in such steps from `from`
// on, or one behind the other where these have no bytes.
LayoutCopy copy_from_steps(const Segment& segment, void* user, std::size_t length_bytes,
                           std::byte* from, const device::Steps& runs);

// The first byte that two segments have in common, each at its buffer; null: none. Looks at all
// pieces of both.
std::byte* first_common_byte(const Segment& one, void* one_user, const Segment& other,
                             void* other_user);

// Calls visit(offset_from_buffer, packed_offset, length) for each contiguous piece of the bytes
// [first, first + length) of the packed form of `segment`, in typemap order.
template <class Visit>
void for_each_piece(const Segment& segment, std::size_t first_bytes, std::size_t length_bytes,
                    Visit&& visit) {
  device::for_each_piece(*segment.type, first_bytes, length_bytes,
                         [&](std::ptrdiff_t offset, std::size_t packed, std::size_t length) {
                           visit(segment.offset_bytes + offset, packed, length);
                         });
}

}  // namespace accord::core
