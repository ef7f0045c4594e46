// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/collective_operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "device/registry.h"

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

CollectiveOperation::CollectiveOperation(CollectiveCall call, std::optional<Turn> turn,
                                         std::shared_ptr<CommQueue> queue)
    : call_(std::move(call)), turn_(std::move(turn)), queue_(std::move(queue)) {}

Operation::Phase CollectiveOperation::advance(HostPort& port) {
  bool pending = false;
  if (stage_ == Stage::stopping) return stop(port, {});
  if (stage_ == Stage::begin) {
    if (Status status = begin(); !status.ok()) return stop(port, std::move(status));
  }
  for (const auto& [stage, step] :
       {std::pair{Stage::voting, &CollectiveOperation::vote},
        std::pair{Stage::joining, &CollectiveOperation::open_group},
        std::pair{Stage::agreeing, &CollectiveOperation::agree_on_group}}) {
    if (stage_ != stage) continue;
    if (Status status = (this->*step)(port, pending); !status.ok())
      return stop(port, std::move(status));
    if (pending) return Phase::queued;
  }
  if (stage_ == Stage::whole || stage_ == Stage::whole_in_host) {
    if (Status status = whole(port, pending); !status.ok()) return stop(port, std::move(status));
    return pending ? Phase::issued : Phase::done;
  }
  if (stage_ == Stage::exchange) {
    bool done = false;
    if (Status status = exchange_->advance(done); !status.ok())
      return stop(port, std::move(status));
    if (done) return finish();
    port.poke();
    return Phase::queued;
  }
  if (Status status = move_slots(port); !status.ok()) return stop(port, std::move(status));
  if (finished_ == chunks_) return finish();
  return next_issue_ == chunks_ ? Phase::issued : Phase::queued;
}

Operation::Phase CollectiveOperation::finish() {
  if (call_.pipeline->out.shadowed) status_ = call_.recv.copy_out();
  return Phase::done;
}

// After an error nothing more is issued (going on would hand the peers wrong data as a success),
// but shadows that a copy or the host MPI still works on must outlive that work.
Operation::Phase CollectiveOperation::stop(HostPort& port, Status status) {
  stage_ = Stage::stopping;
  keep_first(status_, std::move(status));
  bool all_done = true;
  if (exchange_) exchange_->stop(all_done);
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
  return start_as(turn_ && turn_->result->known ? turn_->result->mode : Mode::plain);
}

Status CollectiveOperation::start_as(Mode mode) {
  if (mode == Mode::plain) {
    stage_ = Stage::whole;
    return {};
  }
  if (mode == Mode::pipelined) {
    ACCORD_TRY(open_ends());
    return open_slots();
  }
  path_ = "node";
  stage_ = Stage::exchange;
  // First: it takes this call's numbers, and after an error tells the peers.
  exchange_.emplace(queue_->group, *call_.pipeline);
  return open_ends();
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
  const bool tries_node = all_.any_device() && call_.pipeline->exchange && !queue_->group_declined;
  if (tries_node && !queue_->group) return join();
  turn_->result->mode = all_.any_device() ? best_mode() : Mode::plain;
  turn_->result->known = true;
  return start_as(turn_->result->mode);
}

// For a call with device memory on some rank; follows from what is equal on all ranks.
Mode CollectiveOperation::best_mode() const {
  const Pipeline& pipeline = *call_.pipeline;
  const bool reduces = pipeline.exchange && pipeline.exchange->op != device::ReduceOp::none;
  if (pipeline.exchange && queue_->group && (!reduces || queue_->group->reduces()))
    return Mode::node;
  return pipeline.issue_chunk ? Mode::pipelined : Mode::plain;
}

// All ranks come here in the same call. A region lies where this rank's buffer does.
Status CollectiveOperation::join() {
  const Pipeline& pipeline = *call_.pipeline;
  const PipelineEnd& end = pipeline.in.runtime != nullptr ? pipeline.in : pipeline.out;
  device::DeviceRuntime* runtime = end.runtime != nullptr ? end.runtime : pipeline.region_runtime;
  if (runtime == nullptr) runtime = &device::default_runtime();
  // A joined group's region goes only when the peers have closed it.
  joining_ = std::shared_ptr<node::Group>(new node::Group, node::Group::retire);
  const Status made =
      joining_->prepare(pipeline.rank, pipeline.exchange->size, *runtime,
                        end.runtime != nullptr ? end.device : 0, pipeline.region_bytes, record_);
  if (!made.ok()) log::info("{}", made.message());
  records_.resize(static_cast<std::size_t>(pipeline.exchange->size));
  ACCORD_TRY(Status::from_host(
      pipeline.issue_allgather(&record_, records_.data(), sizeof record_, request_)));
  stage_ = Stage::joining;
  return {};
}

Status CollectiveOperation::open_group(HostPort& port, bool& pending) {
  bool done = false;
  ACCORD_TRY(port.test(request_, done));
  pending = !done;
  if (pending) return {};
  const Status opened = joining_->open(records_);
  if (!opened.ok()) log::info("staging through the host: {}", opened.message());
  mine_ = Vote::cast(call_.pipeline->key, opened.ok() ? Ballot::neutral : Ballot::host);
  ACCORD_TRY(Status::from_host(call_.pipeline->issue_vote(mine_, all_, request_)));
  stage_ = Stage::agreeing;
  return {};
}

Status CollectiveOperation::agree_on_group(HostPort& port, bool& pending) {
  bool done = false;
  ACCORD_TRY(port.test(request_, done));
  pending = !done;
  if (pending) return {};
  joining_->joined(!all_.any_host());
  if (all_.any_host()) {
    queue_->group_declined = true;
  } else {
    queue_->group = joining_;
  }
  joining_.reset();
  turn_->result->mode = best_mode();
  turn_->result->known = true;
  return start_as(turn_->result->mode);
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

Status CollectiveOperation::open_ends() {
  for (PipelineEnd* end : {&call_.pipeline->in, &call_.pipeline->out}) {
    // A runtime copies to and from its own memory only.
    const bool foreign =
        exchange_ && end->runtime != nullptr && end->runtime != &queue_->group->runtime();
    if (foreign) {
      end->shadowed = true;
      end->runtime = nullptr;
    }
    if (!end->shadowed) continue;
    StagedBuffer& buffer = end->of_send && !call_.same_address ? call_.send : call_.recv;
    ACCORD_TRY(buffer.open());
    ACCORD_TRY(buffer.copy_in());
    end->user = buffer.host();
  }
  return {};
}

Status CollectiveOperation::open_slots() {
  Pipeline& pipeline = *call_.pipeline;
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
