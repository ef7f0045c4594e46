// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One end of a collective on one rank: user memory, seen as the packed bytes that a call moves.
// What the ways of a collective (chunks of the host MPI, exchange regions, inboxes) ask of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "device/device_runtime.h"

namespace accord::core {

// One end of a call on this rank: where its bytes are, in user memory.
struct CallEnd {
  void* user = nullptr;
  device::DeviceRuntime* runtime = nullptr;  // null: the CPU may touch the bytes
  // Absolute addresses: goes through the whole shadow of the buffer it is an end of.
  bool shadowed = false;
  bool of_send = false;    // an end of CollectiveCall::send, else of recv
  bool on_device = false;  // plain memory of `device`, which its kernels may use as it is
  int device = -1;
  device::PointerInfo memory;  // the allocation it lies in, where on_device
  Segment segment;             // no elements: this rank has no such end
  // Where elements do not simply follow one another: blocks of them, whose packed forms do.
  std::vector<Segment> blocks;
  // Of calls that go pair by pair: for or from whom each block is, where that is not the rank with
  // its number. Those of a pair are in one order on both of its ranks.
  std::vector<int> peers;
  // What of the packed form is this end's own packed form, in this order; none: all of it.
  struct Part {
    // Bytes of the packed form that are for nobody.
    static constexpr std::size_t kNowhere = SIZE_MAX;
    std::size_t first_bytes = 0;
    std::size_t length_bytes = 0;

    bool nowhere() const noexcept { return first_bytes == kNowhere; }
  };
  std::vector<Part> parts;

  int peer_of(std::size_t block) const noexcept {
    return peers.empty() ? static_cast<int>(block) : peers[block];
  }
  bool present() const noexcept { return segment.count != 0; }
  // The CPU can work on the bytes as they lie.
  bool plain() const noexcept { return runtime == nullptr && (!present() || contiguous()); }
  bool contiguous() const noexcept {
    return parts.empty() && blocks.empty() && segment.type->dense();
  }
  // It is the device's own plain memory, which its kernels reach as it lies.
  bool lies_on(const device::DeviceRuntime& of, int device_number) const noexcept {
    return on_device && !shadowed && runtime == &of && device == device_number && present();
  }
  // They can work on the bytes: elements without gaps.
  bool usable_by(const device::DeviceRuntime& of, int device_number) const noexcept {
    return lies_on(of, device_number) && contiguous();
  }
  // Where byte `packed_bytes` of the packed form is; only where it is contiguous.
  std::byte* address(std::size_t packed_bytes) const noexcept {
    return static_cast<std::byte*>(user) + segment.offset_bytes + segment.type->low_bytes() +
           packed_bytes;
  }
  // How far bytes [first, first + length) are from the start of the allocation; false where they
  // are not all in it: a buffer may span several that lie side by side.
  bool offset_in_memory(std::size_t first_bytes, std::size_t length_bytes,
                        std::uint64_t& offset_bytes) const noexcept;
  // The same of the lowest byte of its elements, and of all up to the highest.
  bool span_in_memory(std::uint64_t& offset_bytes) const noexcept;
  using Direction = LayoutCopy::Direction;
  // What moves bytes [first, first + length) of the packed form to `packed` or from there.
  CopyBatch copies(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                   void* packed) const;
  // Does so, to or from host memory. What the CPU can do is done at once.
  Status copy(Direction direction, std::size_t first_bytes, std::size_t length_bytes, void* host,
              device::CopyTicket& ticket) const;
  Status carry(const CopyBatch& batch, device::CopyTicket& ticket) const;
  Status copied(device::CopyTicket& ticket, bool& done) const;

 private:
  // As if there were no parts.
  void add_copies(Direction direction, std::size_t first_bytes, std::size_t length_bytes,
                  void* packed, CopyBatch& batch) const;
};

}  // namespace accord::core
