// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One buffer argument of an MPI call. A host buffer is handed to the host MPI as it is; memory that
// the CPU must not touch gets a shadow on the host with the same layout: `copy_in` brings the bytes
// the call reads, `copy_out` writes exactly the bytes the call wrote (never a gap). The datatype
// stays the user's own, so all of MPI's rules on types and operations stay the host MPI's business.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "core/layout.h"
#include "device/staging_pool.h"

namespace accord::core {

class StagedBuffer {
 public:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  StagedBuffer() = default;

  // A buffer the host MPI gets as it is (host memory, MPI_IN_PLACE, a pointer that is not
  // significant here).
  static StagedBuffer untouched(const void* user);

  // A buffer in memory that needs staging. `where` says whose.
  static StagedBuffer staged(const void* user, const device::PointerInfo& where);

  // MPI_BOTTOM with absolute addresses: each run is classified by itself, host and device runs may
  // mix. Only the pages around them have a shadow, all at one distance.
  static StagedBuffer absolute(const void* bottom);

  bool is_staged() const noexcept { return staged_; }
  void* user() const noexcept { return user_; }
  const device::PointerInfo& where() const noexcept { return where_; }

  // Declares bytes the host MPI will read / will write. Before open().
  void reads(Segment segment);
  void writes(Segment segment);

  const std::vector<Segment>& read_segments() const noexcept { return reads_; }
  const std::vector<Segment>& written_segments() const noexcept { return writes_; }

  // Declares that what the call writes will hardly come by way of the shadow: a long one is not
  // page-locked for that, until something has come so after all.
  void is_bypassed() noexcept { is_bypassed_ = true; }
  // It has not come so: nor will the next ones.
  void was_bypassed() noexcept;

  // Declares that what the call writes keeps its old content where the call writes nothing after
  // all.
  void preserve();

  // Takes over what `other`, a buffer at the same address or a part of this one, declared.
  void absorb(const StagedBuffer& other);

  // Takes shadow memory for everything declared. No effect on an untouched buffer. The host MPI
  // gets another pointer than that of `other`, the call's other buffer if it is open already: equal
  // ones mean a call in place to some (Open MPI 5.0), which reads what it shall write.
  Status open(const StagedBuffer* other = nullptr);

  // Copies what the call reads to the shadow, resp. the first `limit_bytes` (in typemap order) of
  // what it wrote back to the user's memory. Both wait for the copies only.
  Status copy_in();
  Status copy_out(std::size_t limit_bytes = kAll);
  // What copy_out would copy, for somebody who does so on where()'s device. Nothing of absolute
  // addresses, which are of several, nor where it takes more than copies.
  CopyBatch outgoing(std::size_t limit_bytes) const;
  // Of what the call wrote, these segments.
  Status copy_out_only(const std::vector<Segment>& segments);

  // The pointer to give to the host MPI in the user's place; valid after open().
  void* host() const noexcept;

 private:
  using Direction = LayoutCopy::Direction;
  CopyBatch batch_of(const std::vector<Segment>& segments, Direction direction,
                     std::size_t limit_bytes) const;
  Status take_shadow(std::size_t wanted_bytes, bool is_far_apart);
  Status open_absolute(const void* unlike);
  Status copy(const std::vector<Segment>& segments, Direction direction, std::size_t limit_bytes);
  Status copy_packed(const Segment& segment, Direction direction, std::size_t length_bytes);
  Status copy_absolute(const std::vector<Segment>& segments, Direction direction,
                       std::size_t limit_bytes);

  void* user_ = nullptr;
  bool staged_ = false;
  bool absolute_ = false;
  bool is_bypassed_ = false;
  bool is_sparse_ = false;  // its shadow is not page-locked
  device::PointerInfo where_;
  std::vector<Segment> reads_;
  std::vector<Segment> writes_;
  device::StagingBuffer shadow_;
  std::vector<device::StagingBuffer> islands_;  // its parts, of absolute addresses
  std::byte* origin_ = nullptr;                 // shadow address that stands for user_
};

// What many calls wrote, copied out together: one after the other, each copy would wait for the
// device by itself. The buffers stay until that is done.
class CopyOuts {
 public:
  // False where the buffer is not one of the others' device: it is to be copied out by itself.
  bool add(const StagedBuffer& buffer, std::size_t limit_bytes);
  std::size_t size() const noexcept { return size_; }
  // Whether they are as many as a wait for the device is worth.
  bool are_enough() const noexcept { return size_ >= kMany || bytes_ >= kLongBytes; }
  // Begins to copy all of them. To be polled from then on.
  void begin();
  // Until it is done, whatever the status says.
  Status poll(bool& done);

 private:
  static constexpr std::size_t kMany = 16;
  static constexpr std::size_t kLongBytes = std::size_t{64} << 10;

  device::PointerInfo where_;  // of the first
  CopyBatch batch_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  device::CopyTicket ticket_;
  Status status_;
};

}  // namespace accord::core
