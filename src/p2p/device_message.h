// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A message within a node that waits in device memory of its sender, while the host MPI carries its
// header (node/outbox.h). Nothing here waits for more than copies of this rank. Knows no mpi.h.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/layout.h"
#include "core/staged_buffer.h"
#include "node/outbox.h"

namespace accord::p2p {

// Readies `segment` of a buffer in device memory for `receiver`: lends it or packs it. Unless
// `posted` says yes the message cannot go that way, or not yet, and there is no header. After an
// error there is one all the same, which brings the receiver an error, too. `again`: after `later`.
enum class Posted { yes, no, later };
Status post_message(node::Outbox& outbox, const core::Segment& segment,
                    const core::StagedBuffer& buffer, int receiver, node::MessageHeader& header,
                    Posted& posted, bool again = false);

// Whether what the host MPI has received is a header for this rank. `host`: the pointer that it was
// given for `segment`.
bool find_header(const node::Lender& lender, const core::Segment& segment, void* host,
                 std::size_t received_bytes, node::MessageHeader& header);
// The same of the message itself.
bool find_header(const node::Lender& lender, std::span<const std::byte> message,
                 node::MessageHeader& header);

// What the host MPI has received into a buffer with no room for a header may be the beginning of
// one: its ticket (MessageHeader), unless there was room for less than that.
std::optional<std::uint64_t> cut_off_ticket(const core::Segment& segment, void* host);

// After an error no header stays behind in the user's memory, where it might be taken for one anew.
void wipe_header(const core::Segment& segment, void* host);

// Messages that have been matched, and that are copied together: one after the other, each copy
// would wait for the device by itself. Several batches may be under way at a time, so that the
// links are never without one.
class FetchBatch {
 public:
  explicit FetchBatch(node::Outbox& outbox) : outbox_(outbox) {}
  FetchBatch(FetchBatch&&) = default;
  FetchBatch& operator=(FetchBatch&&) = delete;

  // After begin_fetch.
  void add(const node::MessageHeader& header, core::CopyBatch&& copies);
  std::size_t size() const noexcept { return headers_.size(); }
  // Whether what one more look finds had better go with it, since the last one has found more than
  // the `seen` before it: one launch takes longer than some looks. Not once it is worth one.
  bool may_grow(std::size_t seen) const noexcept;
  // Begins to copy all of them. To be polled from then on.
  void begin();
  // Until it is done: then the senders have their memory back, whatever the status says.
  Status poll(bool& done);

 private:
  node::Outbox& outbox_;
  std::vector<node::MessageHeader> headers_;
  std::size_t size_bytes_ = 0;
  core::CopyBatch copies_;
  device::CopyTicket ticket_;
  Status status_;
};

// A batch that is polled by whoever needs what it brings, and by whoever goes on with all of them.
class SharedBatch {
 public:
  explicit SharedBatch(node::Outbox& outbox) : fetches(outbox) {}

  FetchBatch fetches;  // until begin
  void begin();
  // Whether it is done; then the status is there. Not before it has begun.
  bool poll();
  const Status& status() const noexcept { return status_; }

 private:
  std::mutex mutex_;
  bool has_begun_ = false;
  bool is_done_ = false;
  Status status_;
};

// Puts the message where the user wants it; truncated where it does not fit. The sender has its
// memory back whatever comes of it. Device memory is left to the batch, if there is one.
Status fetch_message(node::Outbox& outbox, const core::Segment& segment, core::StagedBuffer& buffer,
                     const node::MessageHeader& header, FetchBatch* batch = nullptr);

}  // namespace accord::p2p
