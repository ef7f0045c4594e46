// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/collective_operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace accord::core {
namespace {

// Chunks in flight: one copied in, two in the host MPI, one copied out.
constexpr std::size_t kSlots = 4;

// The CPU can work on the user's bytes as they lie.
bool direct(const PipelineEnd& end) {
  return end.runtime == nullptr && (end.segment.count == 0 || end.segment.type->dense());
}

bool present(const PipelineEnd& end) { return end.segment.count != 0; }

}  // namespace

CollectiveOperation::CollectiveOperation(CollectiveCall call, std::optional<Turn> turn)
    : call_(std::move(call)), turn_(std::move(turn)) {}

Operation::Phase CollectiveOperation::advance(HostPort& port) {
  bool pending = false;
  if (stage_ == Stage::stopping) return stop(port, {});
  if (stage_ == Stage::begin) {
    if (Status status = begin(); !status.ok()) return stop(port, std::move(status));
  }
  if (stage_ == Stage::voting) {
    if (Status status = vote(port, pending); !status.ok()) return stop(port, std::move(status));
    if (pending) return Phase::queued;
  }
  if (stage_ == Stage::whole || stage_ == Stage::whole_in_host) {
    if (Status status = whole(port, pending); !status.ok()) return stop(port, std::move(status));
    return pending ? Phase::issued : Phase::done;
  }
  if (Status status = move_slots(port); !status.ok()) return stop(port, std::move(status));
  if (finished_ == chunks_) {
    if (call_.pipeline->out.shadowed) status_ = call_.recv.copy_out();
    return Phase::done;
  }
  return next_issue_ == chunks_ ? Phase::issued : Phase::queued;
}

// After an error nothing more is issued (going on would hand the peers wrong data as a success),
// but shadows that a copy or the host MPI still works on must outlive that work.
Operation::Phase CollectiveOperation::stop(HostPort& port, Status status) {
  stage_ = Stage::stopping;
  keep_first(status_, std::move(status));
  bool all_done = true;
  for (Slot& slot : slots_) {
    bool done = true;
    Status polled;
    if (slot.state == Slot::State::in_host) {
      done = false;
      polled = port.test(slot.request, done);
    }
    if (slot.state == Slot::State::copying_in) polled = poll_copy(call_.pipeline->in, slot, done);
    if (slot.state == Slot::State::copying_out) polled = poll_copy(call_.pipeline->out, slot, done);
    if (done || !polled.ok()) slot.state = Slot::State::empty;
    all_done = all_done && slot.state == Slot::State::empty;
  }
  return all_done ? Phase::done : Phase::issued;
}

Status CollectiveOperation::begin() {
  if (turn_ && turn_->votes) {
    mine_ = Vote::cast(call_.pipeline->key, call_.pipeline->ballot);
    ACCORD_TRY(Status::from_host(call_.pipeline->issue_vote(mine_, all_, request_)));
    stage_ = Stage::voting;
    return {};
  }
  // The deciding vote was issued and awaited by an earlier operation of this queue, hence is known
  // here.
  if (turn_ && turn_->result->known && turn_->result->mode == Mode::pipelined) return open_slots();
  stage_ = Stage::whole;
  return {};
}

Status CollectiveOperation::vote(HostPort& port, bool& pending) {
  bool done = false;
  ACCORD_TRY(port.test(request_, done));
  pending = !done;
  if (pending) return {};
  if (!all_.agreed()) {
    return {StatusCode::mismatch,
            "the ranks of this communicator made different collective calls (kind, operation, type "
            "or size)"};
  }
  turn_->result->mode = all_.any_device() ? Mode::pipelined : Mode::plain;
  turn_->result->known = true;
  if (turn_->result->mode == Mode::pipelined) return open_slots();
  stage_ = Stage::whole;
  return {};
}

Status CollectiveOperation::whole(HostPort& port, bool& pending) {
  if (stage_ == Stage::whole) {
    path_ = "staged";
    ACCORD_TRY(call_.open());
    ACCORD_TRY(call_.copy_in());
    ACCORD_TRY(Status::from_host(call_.issue(call_.send_host(), call_.recv.host(), request_)));
    stage_ = Stage::whole_in_host;
  }
  bool done = false;
  ACCORD_TRY(port.test(request_, done));
  pending = !done;
  return done ? call_.recv.copy_out() : Status();
}

std::size_t CollectiveOperation::chunk_first_bytes(std::size_t chunk) const {
  return chunk * call_.pipeline->chunk_bytes;
}

std::size_t CollectiveOperation::chunk_length_bytes(std::size_t chunk) const {
  return std::min(call_.pipeline->chunk_bytes,
                  call_.pipeline->size_bytes - chunk_first_bytes(chunk));
}

Status CollectiveOperation::open_slots() {
  Pipeline& pipeline = *call_.pipeline;
  for (PipelineEnd* end : {&pipeline.in, &pipeline.out}) {
    if (!end->shadowed) continue;
    ACCORD_TRY(call_.recv.open());
    ACCORD_TRY(call_.recv.copy_in());
    end->user = call_.recv.host();
  }
  path_ = "staged-pipelined";
  stage_ = Stage::chunks;
  chunks_ = (pipeline.size_bytes + pipeline.chunk_bytes - 1) / pipeline.chunk_bytes;
  slots_.resize(std::min(kSlots, chunks_));
  device::DeviceRuntime* runtime = pipeline.in.runtime ? pipeline.in.runtime : pipeline.out.runtime;
  if (direct(pipeline.in) && direct(pipeline.out)) return {};
  for (Slot& slot : slots_) {
    // No device here, but a host buffer with gaps: plain memory does.
    ACCORD_TRY(runtime != nullptr
                   ? device::staging_pool().acquire(runtime, chunk_length_bytes(0), slot.shadow)
                   : device::staging_pool().acquire_sparse(chunk_length_bytes(0), slot.shadow));
  }
  return {};
}

Status CollectiveOperation::move_slots(HostPort& port) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Slot& slot : slots_) ACCORD_TRY(move(slot, port, moved));
  }
  return {};
}

Status CollectiveOperation::move(Slot& slot, HostPort& port, bool& moved) {
  using State = Slot::State;
  const State before = slot.state;
  bool done = false;
  if (slot.state == State::empty && next_fill_ < chunks_) {
    slot.chunk = next_fill_++;
    ACCORD_TRY(fill(slot));
    slot.state = State::copying_in;
  }
  if (slot.state == State::copying_in) {
    ACCORD_TRY(poll_copy(call_.pipeline->in, slot, done));
    if (done) slot.state = State::ready;
  }
  if (slot.state == State::ready && slot.chunk == next_issue_) {
    ACCORD_TRY(issue(slot));
    ++next_issue_;
    slot.state = State::in_host;
  }
  if (slot.state == State::in_host) {
    done = false;
    ACCORD_TRY(port.test(slot.request, done));
    if (done) {
      ACCORD_TRY(drain(slot));
      slot.state = State::copying_out;
    }
  }
  if (slot.state == State::copying_out) {
    ACCORD_TRY(poll_copy(call_.pipeline->out, slot, done));
    if (done) {
      slot.state = State::empty;
      ++finished_;
    }
  }
  moved = moved || slot.state != before;
  return {};
}

Status CollectiveOperation::fill(Slot& slot) {
  const PipelineEnd& in = call_.pipeline->in;
  return present(in) && !direct(in) ? copy(in, slot, true) : Status();
}

Status CollectiveOperation::issue(Slot& slot) {
  const Pipeline& pipeline = *call_.pipeline;
  return Status::from_host(pipeline.issue_chunk(chunk_pointer(pipeline.in, slot),
                                                chunk_pointer(pipeline.out, slot),
                                                chunk_length_bytes(slot.chunk), slot.request));
}

Status CollectiveOperation::drain(Slot& slot) {
  const PipelineEnd& out = call_.pipeline->out;
  return present(out) && !direct(out) ? copy(out, slot, false) : Status();
}

// Where the host MPI finds or leaves this chunk. Both ends of a rank share one shadow: the call
// then is in place.
void* CollectiveOperation::chunk_pointer(const PipelineEnd& end, const Slot& slot) const {
  if (!present(end)) return nullptr;
  if (!direct(end)) return slot.shadow.data();
  return static_cast<std::byte*>(end.user) + end.segment.offset_bytes +
         end.segment.type->low_bytes() + chunk_first_bytes(slot.chunk);
}

Status CollectiveOperation::copy(const PipelineEnd& end, Slot& slot, bool to_host) {
  const CopyList list = packed_copies(end.segment, end.user, chunk_first_bytes(slot.chunk),
                                      chunk_length_bytes(slot.chunk), slot.shadow.data(), to_host);
  if (end.runtime != nullptr)
    return end.runtime->copy_begin(end.device, list.copies(), slot.ticket);
  for (const device::Copy& rows : list.copies()) {
    for (std::size_t row = 0; row < rows.rows; ++row) {
      std::memcpy(static_cast<std::byte*>(rows.dst) + row * rows.dst_pitch_bytes,
                  static_cast<const std::byte*>(rows.src) + row * rows.src_pitch_bytes,
                  rows.row_bytes);
    }
  }
  return {};
}

Status CollectiveOperation::poll_copy(const PipelineEnd& end, Slot& slot, bool& done) {
  done = end.runtime == nullptr || slot.ticket.handle == nullptr;
  return done ? Status() : end.runtime->copy_done(slot.ticket, done);
}

}  // namespace accord::core
