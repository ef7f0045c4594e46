// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/batch.h"

#include <algorithm>
#include <utility>

#include "base/config.h"

namespace accord::rma {

// A ticket has to be driven to its end.
Batch::~Batch() {
  for (bool done = begun_.empty(); !done;)
    if (!poll(done).ok()) return;
}

Status Batch::add(Direction direction, const Place& to, std::span<const Piece> to_pieces,
                  const Place& from, std::span<const Piece> from_pieces) {
  const bool to_device = device::needs_staging(to.where);
  const bool from_device = device::needs_staging(from.where);
  const bool is_plain = !to.is_absolute && !from.is_absolute && (to_device || from_device) &&
                        (!to_device || !from_device || to.where.runtime == from.where.runtime);
  if (!is_plain) return move(to, to_pieces, from, from_pieces);
  const device::PointerInfo& own = to_device ? to.where : from.where;
  const std::lock_guard<std::mutex> locked(mutex_);
  const bool is_empty = waiting_.empty() && begun_.empty();
  if (!is_empty && runtime_ != own.runtime) return move(to, to_pieces, from, from_pieces);
  if (runtime_ != own.runtime || device_ != own.device) {
    ACCORD_TRY(issue(false));
    runtime_ = own.runtime;
    device_ = own.device;
    worker_ = may_use_kernels_ ? &device::DirectWorker::of(*runtime_, device_) : nullptr;
  }
  collect(direction, to, to_pieces, from, from_pieces);
  return is_full() ? issue(false) : Status();
}

// What follows works with the lock held.

void Batch::collect(Direction direction, const Place& to, std::span<const Piece> to_pieces,
                    const Place& from, std::span<const Piece> from_pieces) {
  const auto size_bytes = static_cast<std::size_t>(size_of(to_pieces));
  const bool is_wanted = worker_ != nullptr && worker_->is_wanted();
  is_short_ = is_short_ && is_wanted && size_bytes <= config().copy_kernel_bytes &&
              is_reached(to, to_pieces) && is_reached(from, from_pieces);
  has_puts_ = has_puts_ || direction == Direction::put || !device::needs_staging(to.where);
  const Allocations allocations{.to = to.where.base,
                                .from = from.where.base,
                                .to_id = to.where.buffer_id,
                                .from_id = from.where.buffer_id,
                                .is_known = to.where.base != nullptr && from.where.base != nullptr};
  device::CopyList apart;
  const bool may_join = allocations.is_known && allocations == last_;
  device::CopyList& list = may_join ? waiting_ : apart;
  (void)for_each_common(to, to_pieces, from, from_pieces,
                        [&](std::byte* in, const std::byte* out, std::size_t length_bytes) {
                          list.append(in, out, length_bytes);
                          return Status();
                        });
  waiting_.add(apart);
  waiting_bytes_ += size_bytes;
  last_ = allocations;
}

bool Batch::is_reached(const Place& place, std::span<const Piece> pieces) {
  return std::ranges::all_of(pieces, [&](const Piece& piece) {
    return worker_->reaches(place.where, address_in(place, piece.offset_bytes),
                            static_cast<std::size_t>(piece.length_bytes));
  });
}

bool Batch::is_full() const {
  if (is_short_) return waiting_bytes_ >= kShortBytesMax || waiting_rows() >= kCopiesMax;
  return waiting_bytes_ >= enough_bytes_ || waiting_.copies().size() >= kCopiesMax;
}

std::size_t Batch::waiting_rows() const {
  std::size_t count = 0;
  for (const device::Copy& copy : waiting_.copies()) count += copy.rows;
  return count;
}

Status Batch::issue(bool is_last) {
  const bool is_short = std::exchange(is_short_, true) && waiting_rows() <= kCopiesMax;
  const device::CopyList list = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  last_ = {};
  bool done = list.empty();
  if (is_short && !done) ACCORD_TRY(by_kernel(list.copies(), done));
  has_puts_ = false;
  if (done) return {};
  if (is_last && begun_.empty()) return runtime_->copy(device_, list.copies());
  enough_bytes_ = std::min(2 * enough_bytes_, kNextBytesMax);
  device::CopyTicket ticket;
  ACCORD_TRY(runtime_->copy_begin(device_, list.copies(), ticket));
  if (ticket.handle != nullptr) begun_.push_back(ticket);
  return {};
}

// Row by row.
Status Batch::by_kernel(const std::vector<device::Copy>& copies, bool& done) {
  std::vector<device::Copy> rows;
  rows.reserve(kCopiesMax);
  for (const device::Copy& copy : copies)
    for (std::size_t row = 0; row < copy.rows; ++row)
      rows.push_back({.dst = core::at(static_cast<std::byte*>(copy.dst),
                                      static_cast<std::ptrdiff_t>(row * copy.dst_pitch_bytes)),
                      .src = static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes,
                      .row_bytes = copy.row_bytes});
  return worker_->run({.copies = rows, .leaves_device = has_puts_}, done);
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
    enough_bytes_ = kFirstBytes;
    ACCORD_TRY(issue(true));
    if (begun_.empty()) return {};
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
