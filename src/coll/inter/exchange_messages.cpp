// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a chunk goes through between the nodes: the messages of a round, and what is reduced then.
#include <cstring>
#include <utility>

#include "coll/inter/exchange.h"

namespace accord::coll {
namespace {

Status given_up() {
  return {StatusCode::device_error, "nodes: a rank of another node has given up"};
}

// What lies on a device and goes by messages all the same goes through it.
Status take_bounce(const net::Memory& memory, device::StagingBuffer& bounce) {
  device::StagingPool& pool = device::staging_pool();
  if (pool.acquire(memory.where.runtime, memory.size_bytes, bounce).ok()) return {};
  return pool.acquire_sparse(memory.size_bytes, bounce);
}

}  // namespace

// Both its ranks know how long it is.
bool TwoLevelExchange::is_offered(const TwoLevelPlan::Message& message) const {
  return transport_ != nullptr && message.length_bytes >= args_.ways.offer_bytes;
}

Status TwoLevelExchange::begin_message(Flight& flight, const TwoLevelPlan::Message& message,
                                       int tag) {
  Pending pending{.peer = message.peer,
                  .tag = tag,
                  .place = flight.parcel.memory(message.first_bytes, message.length_bytes)};
  if (is_offered(message)) return begin_name(flight, message, std::move(pending));
  if (message.sends) return begin_send(flight, std::move(pending));
  ACCORD_TRY(begin_receive(pending));
  flight.messages.push_back(std::move(pending));
  return {};
}

Status TwoLevelExchange::begin_send(Flight& flight, Pending pending) {
  const net::Memory from = pending.place;
  const std::size_t size_bytes = stopping_ ? 0 : from.size_bytes;
  const void* bytes = from.start;
  if (size_bytes != 0 && from.where.runtime != nullptr) {
    ACCORD_TRY(take_bounce(from, pending.bounce));
    const device::Copy copy{
        .dst = pending.bounce.data(), .src = from.start, .row_bytes = size_bytes};
    ACCORD_TRY(from.where.runtime->copy(from.where.device, {&copy, 1}));
    bytes = pending.bounce.data();
  }
  ACCORD_TRY(wire_->send(pending.peer, pending.tag, bytes, size_bytes, pending.request));
  flight.messages.push_back(std::move(pending));
  return {};
}

Status TwoLevelExchange::begin_receive(Pending& pending) {
  const net::Memory to = pending.place;
  void* bytes = to.start;
  if (to.where.runtime != nullptr) {
    ACCORD_TRY(take_bounce(to, pending.bounce));
    bytes = pending.bounce.data();
  }
  pending.expected_bytes = to.size_bytes;
  return wire_->receive(pending.peer, pending.tag, bytes, to.size_bytes, pending.request);
}

Status TwoLevelExchange::end_receive(Pending& pending) {
  if (pending.bounce.empty() || pending.expected_bytes == 0) return {};
  const net::Memory to = pending.place;
  const device::Copy copy{
      .dst = to.start, .src = pending.bounce.data(), .row_bytes = to.size_bytes};
  return to.where.runtime->copy(to.where.device, {&copy, 1});
}

// Behind a name of 0 what it stands for.
Status TwoLevelExchange::begin_name(Flight& flight, const TwoLevelPlan::Message& message,
                                    Pending pending) {
  pending.name = std::make_unique<Transport::Name>(0);
  constexpr std::size_t kBytes = sizeof *pending.name;
  if (!message.sends) {
    pending.expected_bytes = kBytes;
    ACCORD_TRY(
        wire_->receive(pending.peer, pending.tag, pending.name.get(), kBytes, pending.request));
    flight.messages.push_back(std::move(pending));
    return {};
  }
  const bool reaches = !stopping_ && transport_->reaches(pending.peer);
  if (reaches) pending.end = transport_->offer(pending.peer, pending.place, *pending.name);
  const Status sent = wire_->send(pending.peer, pending.tag, pending.name.get(),
                                  stopping_ ? 0 : kBytes, pending.request);
  if (!sent.ok() && pending.end) pending.end->stop();  // nobody has heard of it
  ACCORD_TRY(sent);
  Pending behind{.peer = pending.peer, .tag = pending.tag, .place = pending.place};
  flight.messages.push_back(std::move(pending));
  return reaches || stopping_ ? Status() : begin_send(flight, std::move(behind));
}

// With an error it has ended, unless what it stands for goes on.
Status TwoLevelExchange::poll(Pending& pending, bool& ended) {
  ended = false;
  if (!pending.has_passed) {
    core::Completion completion;
    Status status = wire_->test(pending.request, pending.has_passed, completion);
    if (status.ok() && !pending.has_passed) return {};
    if (status.ok() && completion.received_bytes < pending.expected_bytes) status = given_up();
    pending.has_passed = true;
    if (status.ok()) status = pending.name ? take_name(pending) : end_receive(pending);
    if (!status.ok() && pending.end) pending.end->stop();
    ended = pending.has_passed && !pending.end;
    if (!pending.end || !status.ok()) return status;
  }
  if (stopping_) pending.end->stop();
  return pending.end->poll(ended);
}

// Of what a peer offers, or sends behind it; a sender has nothing to take.
Status TwoLevelExchange::take_name(Pending& pending) {
  const Transport::Name name = *pending.name;
  if (pending.expected_bytes == 0) return {};
  pending.name.reset();
  if (name == 0) {
    ACCORD_TRY(begin_receive(pending));
    pending.has_passed = false;
  } else if (stopping_) {
    transport_->dismiss(pending.peer, name);
  } else {
    pending.end = transport_->fetch(pending.peer, name, pending.place);
  }
  return {};
}

// By a transport all of them, since who is asked for something may wait for what it asks for; else
// one after the other.
Status TwoLevelExchange::poll_messages(Flight& flight, bool& done) {
  Status first;
  for (std::size_t left = flight.messages.size(); left-- > 0;) {
    bool ended = false;
    keep_first(first, poll(flight.messages[left], ended));
    if (ended) flight.messages.erase(flight.messages.begin() + static_cast<std::ptrdiff_t>(left));
    if (!ended && transport_ == nullptr) break;
  }
  done = flight.messages.empty();
  return first;
}

// Those of its round, one after the other: some need the result of another.
Status TwoLevelExchange::reduce(Flight& flight, bool& done) {
  const auto& reductions = flight.chunk.rounds[flight.round].reductions;
  for (done = true; flight.reduced < reductions.size(); ++flight.reduced) {
    const TwoLevelPlan::Reduction& one = reductions[flight.reduced];
    if (one.length_bytes == 0) continue;
    stages::enter(stages::Stage::reduce);
    if (!flight.parcel.on_device()) {
      ACCORD_TRY(reduce_on_host(flight, one));
      continue;
    }
    if (!std::exchange(flight.is_reducing, true)) ACCORD_TRY(begin_reduction(flight, one));
    ACCORD_TRY(group_->runtime().copy_done(flight.reducing, done));
    if (!done) return {};
    flight.is_reducing = false;
  }
  return {};
}

bool TwoLevelExchange::has_reduced(Flight& flight) const {
  bool done = true;
  if (flight.is_reducing && !group_->runtime().copy_done(flight.reducing, done).ok()) done = true;
  if (done) flight.is_reducing = false;
  return done;
}

Status TwoLevelExchange::begin_reduction(Flight& flight, const TwoLevelPlan::Reduction& reduction) {
  std::vector<const void*> sources;
  for (const std::size_t source : reduction.sources)
    sources.push_back(flight.parcel.data() + source);
  const node::Call& call = *args_.exchange;
  return group_->runtime().reduce_begin(
      group_->device(),
      {.dst = flight.parcel.data() + reduction.result_bytes,
       .sources = sources,
       .count = reduction.length_bytes / device::element_bytes(call.element),
       .op = call.op,
       .element = call.element},
      flight.reducing);
}

// From the last source on, so that each operation has the earlier ones to its left.
Status TwoLevelExchange::reduce_on_host(Flight& flight, const TwoLevelPlan::Reduction& reduction) {
  std::byte* const parcel = flight.parcel.data();
  std::byte* const result = parcel + reduction.sources.back();
  for (std::size_t left = reduction.sources.size() - 1; left-- > 0;) {
    ACCORD_TRY(Status::from_host(
        args_.host.reduce_local(parcel + reduction.sources[left], result, reduction.length_bytes)));
  }
  std::byte* const wanted = parcel + reduction.result_bytes;
  if (wanted != result) std::memcpy(wanted, result, reduction.length_bytes);
  return {};
}

}  // namespace accord::coll
