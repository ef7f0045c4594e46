// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/batch.h"

#include <utility>

namespace accord::rma {

// A ticket has to be driven to its end.
Batch::~Batch() {
  for (bool done = begun_.empty(); !done;)
    if (!poll(done).ok()) return;
}

Status Batch::add(const Place& to, std::span<const Piece> to_pieces, const Place& from,
                  std::span<const Piece> from_pieces) {
  const bool to_device = device::needs_staging(to.where);
  const bool from_device = device::needs_staging(from.where);
  const bool is_plain = !to.is_absolute && !from.is_absolute && (to_device || from_device) &&
                        (!to_device || !from_device || to.where.runtime == from.where.runtime);
  if (!is_plain) return move(to, to_pieces, from, from_pieces);
  const device::PointerInfo& own = to_device ? to.where : from.where;
  const std::lock_guard<std::mutex> locked(mutex_);
  const bool is_empty = waiting_.empty() && begun_.empty();
  if (!is_empty && runtime_ != own.runtime) return move(to, to_pieces, from, from_pieces);
  if (device_ != own.device) ACCORD_TRY(begin());
  runtime_ = own.runtime;
  device_ = own.device;
  device::CopyList list;  // its neighbours in the batch may be of other allocations
  ACCORD_TRY(for_each_common(to, to_pieces, from, from_pieces,
                             [&](std::byte* in, const std::byte* out, std::size_t length_bytes) {
                               list.append(in, out, length_bytes);
                               return Status();
                             }));
  waiting_.add(list);
  waiting_bytes_ += static_cast<std::size_t>(size_of(to_pieces));
  const bool is_long = waiting_bytes_ >= kBytesMax || waiting_.copies().size() >= kCopiesMax;
  return is_long ? begin() : Status();
}

// With the lock held.
Status Batch::begin() {
  if (waiting_.empty()) return {};
  const device::CopyList copies = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  device::CopyTicket ticket;
  ACCORD_TRY(runtime_->copy_begin(device_, copies.copies(), ticket));
  if (ticket.handle != nullptr) begun_.push_back(ticket);
  return {};
}

Status Batch::poll(bool& done) {
  while (!begun_.empty()) {
    bool is_through = false;
    const Status status = runtime_->copy_done(begun_.back(), is_through);
    if (!is_through && status.ok()) break;
    begun_.pop_back();
    ACCORD_TRY(status);
  }
  done = begun_.empty();
  return {};
}

Status Batch::finish(core::Engine& engine) {
  {
    const std::lock_guard<std::mutex> locked(mutex_);
    if (waiting_.empty() && begun_.empty()) return {};
    if (begun_.empty()) {
      const device::CopyList copies = std::exchange(waiting_, {});
      waiting_bytes_ = 0;
      return runtime_->copy(device_, copies.copies());
    }
    ACCORD_TRY(begin());
  }
  Status status;
  engine.wait_until([&] {
    bool done = false;
    const std::lock_guard<std::mutex> locked(mutex_);
    keep_first(status, poll(done));
    return done;
  });
  return status;
}

}  // namespace accord::rma
