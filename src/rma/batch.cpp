// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/batch.h"

#include <algorithm>
#include <utility>

namespace accord::rma {

// A ticket has to be driven to its end.
Batch::~Batch() {
  for (bool done = begun_.empty(); !done;)
    if (!poll(done).ok()) return;
}

namespace {

// What a kernel that follows layouts does better than copies of rows.
bool find_layout(const End& to, const End& from, std::size_t size_bytes, device::LayoutCopy& copy) {
  constexpr std::size_t kRowsLeast = 16;
  const auto is_known = [](const End& end) {
    return end.layout.type != nullptr && end.place.where.kind == device::MemoryKind::device;
  };
  if (std::max(to.pieces.size(), from.pieces.size()) < kRowsLeast || !is_known(to) ||
      !is_known(from))
    return false;
  device::Steps steps;
  const auto low = [](const End& end) { return core::at(end.place.start, end.layout.low_bytes()); };
  if (core::find_steps(from.layout, steps))
    copy = core::copy_from_steps(to.layout, to.place.start, size_bytes, low(from), steps);
  else if (to.layout.type->dense())
    copy = core::packed_copy(from.layout, from.place.start, 0, size_bytes, low(to),
                             device::LayoutCopy::Direction::pack);
  else
    return false;
  return device::kernel_pays(copy);
}

}  // namespace

Status Batch::add(Direction direction, const End& to, const End& from) {
  const std::lock_guard<std::mutex> locked(mutex_);
  bool is_taken = false;
  ACCORD_TRY(take(to.place, from.place, is_taken));
  if (!is_taken) return move(to.place, to.pieces, from.place, from.pieces);
  has_puts_ = has_puts_ || direction == Direction::put || !device::needs_staging(to.place.where);
  const auto size_bytes =
      static_cast<std::size_t>(std::min(size_of(to.pieces), size_of(from.pieces)));
  waiting_bytes_ += size_bytes;
  device::LayoutCopy layout;
  if (find_layout(to, from, size_bytes, layout)) {
    device::CopyBatch one;
    one.append(std::move(layout));
    waiting_.add(std::move(one));
    is_short_ = false;
    last_ = {};
  } else {
    collect(to, from);
  }
  return is_full() ? issue(false) : Status();
}

// What follows works with the lock held.

// Whether the batch is, or becomes, of their runtime and device.
Status Batch::take(const Place& to, const Place& from, bool& is_taken) {
  const bool to_device = device::needs_staging(to.where);
  const bool from_device = device::needs_staging(from.where);
  const device::PointerInfo& own = to_device ? to.where : from.where;
  const bool is_empty = waiting_.empty() && begun_.empty();
  is_taken = !to.is_absolute && !from.is_absolute && (to_device || from_device) &&
             (!to_device || !from_device || to.where.runtime == from.where.runtime) &&
             (is_empty || runtime_ == own.runtime);
  if (!is_taken || (runtime_ == own.runtime && device_ == own.device)) return {};
  ACCORD_TRY(issue(false));
  runtime_ = own.runtime;
  device_ = own.device;
  worker_ = may_use_kernels_ ? &device::DirectWorker::of(*runtime_, device_) : nullptr;
  return {};
}

void Batch::collect(const End& to, const End& from) {
  const bool is_wanted = worker_ != nullptr && worker_->is_wanted();
  is_short_ = is_short_ && is_wanted && size_of(to.pieces) <= short_bytes() && is_reached(to) &&
              is_reached(from);
  const device::PointerInfo& target = to.place.where;
  const device::PointerInfo& source = from.place.where;
  const Allocations allocations{.to = target.base,
                                .from = source.base,
                                .to_id = target.buffer_id,
                                .from_id = source.buffer_id,
                                .is_known = target.base != nullptr && source.base != nullptr};
  device::CopyList apart;
  const bool may_join = allocations.is_known && allocations == last_;
  device::CopyList& list = may_join ? waiting_.plain : apart;
  (void)for_each_common(to.place, to.pieces, from.place, from.pieces,
                        [&](std::byte* in, const std::byte* out, std::size_t length_bytes) {
                          list.append(in, out, length_bytes);
                          return Status();
                        });
  waiting_.plain.add(apart);
  last_ = allocations;
}

bool Batch::is_reached(const End& end) {
  return std::ranges::all_of(end.pieces, [&](const Piece& piece) {
    return worker_->reaches(end.place.where, address_in(end.place, piece.offset_bytes),
                            static_cast<std::size_t>(piece.length_bytes));
  });
}

bool Batch::is_full() const {
  if (is_short_) return waiting_bytes_ >= kShortBytesMax || waiting_rows() >= kCopiesMax;
  return waiting_bytes_ >= enough_bytes_ ||
         waiting_.plain.copies().size() + waiting_.laid_out.size() >= kCopiesMax;
}

std::size_t Batch::waiting_rows() const {
  std::size_t count = 0;
  for (const device::Copy& copy : waiting_.plain.copies()) count += copy.rows;
  return count;
}

Status Batch::issue(bool is_last) {
  const bool is_short = std::exchange(is_short_, true) && waiting_rows() <= kCopiesMax;
  const device::CopyBatch batch = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  last_ = {};
  bool done = batch.empty();
  if (is_short && !done)
    ACCORD_TRY(worker_->run({.copies = batch.plain.copies(), .leaves_device = has_puts_}, done));
  has_puts_ = false;
  if (done) return {};
  if (is_last && begun_.empty()) return runtime_->copy_batch(device_, batch);
  enough_bytes_ = std::min(2 * enough_bytes_, kNextBytesMax);
  device::CopyTicket ticket;
  ACCORD_TRY(runtime_->batch_begin(device_, batch, ticket));
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
