// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/exchange.h"

#include <atomic>

#include "base/config.h"
#include "base/log.h"
#include "base/stages.h"

namespace accord::coll {
namespace {

// Polls between two looks after the library and the peers.
constexpr unsigned kPollsPerCheck = 64;

std::atomic<std::uint64_t> calls_done{0};
std::atomic<std::uint64_t> calls_other_way{0};
std::atomic<std::uint64_t> calls_replayed{0};

}  // namespace

CclExchange::CclExchange(CclGroup& group, const CollArgs& args, CclTurn::Company company,
                         CclTurn::Process process)
    : group_(group),
      size_bytes_(args.size_bytes),
      turn_(group.make_turn(company, process)),
      cargo_(CclCargo::of(group, args)) {}

void CclExchange::count_other_way() noexcept {
  calls_other_way.fetch_add(1, std::memory_order_relaxed);
}

void CclExchange::report() {
  const std::uint64_t done = calls_done.load(std::memory_order_relaxed);
  const std::uint64_t other_way = calls_other_way.load(std::memory_order_relaxed);
  if (done + other_way == 0) return;
  log::info(
      "ccl: {} collectives by a collective library, {} of them replayed, {} that were to go by one "
      "another way",
      done, calls_replayed.load(std::memory_order_relaxed), other_way);
}

Status CclExchange::advance(bool& done) {
  bool ready = false;
  switch (state_) {
    case State::begin:
      stages::enter(stages::Stage::copy_in);
      ACCORD_TRY(cargo_->pack(copy_in_));
      state_ = State::packing;
      [[fallthrough]];
    case State::packing:
      ACCORD_TRY(poll(copy_in_, ready));
      if (!ready) break;
      state_ = State::entering;
      stages::enter(stages::Stage::wait);
      [[fallthrough]];
    case State::entering:
      if (cargo_->has_to_tell()) {
        if (!turn_->may_tell()) break;
        cargo_->tell_peers();
      }
      offer();
      turn_->enter();
      // While the peers get to know.
      if (!cargo_->has_to_tell() && !offered_) works_ = cargo_->works();
      state_ = State::meeting;
      [[fallthrough]];
    case State::meeting:
      if (!turn_->all_entered()) break;
      // Nothing is asked of a library that was given up. Within a node the mailboxes have just been
      // read, so that costs nothing here.
      ACCORD_TRY(group_.check_peers());
      if (cargo_->has_to_tell()) {
        cargo_->look_at_peers();
        works_ = cargo_->works();
      }
      if (offered_) decision_ = group_.replays->decide(turn_->told_by_all());
      state_ = State::starting;
      [[fallthrough]];
    case State::starting:
      if (!turn_->comes()) break;
      stages::enter(stages::Stage::move);
      ACCORD_TRY(launch());
      turn_->started();
      state_ = State::running;
      [[fallthrough]];
    case State::running:
      ACCORD_TRY(poll_library(ready));
      if (!ready) break;
      // What failed may have ended all the same.
      ACCORD_TRY(group_.communicator->check());
      turn_->end();
      stages::enter(stages::Stage::copy_out);
      ACCORD_TRY(cargo_->unpack(copy_out_));
      state_ = State::unpacking;
      [[fallthrough]];
    case State::unpacking:
      ACCORD_TRY(poll(copy_out_, ready));
      if (!ready) break;
      calls_done.fetch_add(1, std::memory_order_relaxed);
      state_ = State::done;
      [[fallthrough]];
    case State::done:
      break;
  }
  done = state_ == State::done;
  return done ? cargo_->mistake() : check();
}

Status CclExchange::check() {
  if (++checks_ % kPollsPerCheck != 0) return {};
  if (state_ == State::running) ACCORD_TRY(group_.communicator->check());
  return group_.check_peers();
}

// What a kernel of the library still waits for ends with its communicator, here and on the peers,
// which see that this rank has given up. After a mistake of the program alone nothing is left to
// stop, and the communicator is as good as before.
void CclExchange::stop(bool& done) {
  done = true;
  if (state_ == State::done) return;
  group_.give_up();
  const auto wait = [&](auto poll_one) {
    bool ended = false;
    if (!poll_one(ended).ok()) ended = true;
    done = done && ended;
  };
  for (device::CopyTicket* ticket : {&copy_in_, &copy_out_})
    wait([&](bool& ended) { return poll(*ticket, ended); });
  wait([&](bool& ended) { return poll_library(ended); });
  if (done) turn_->end();
}

// The word is told in any case: the one before it must not be read again.
void CclExchange::offer() {
  offered_ = group_.replays != nullptr;
  if (!offered_) return;
  std::uint64_t offered = group_.replays->offer_nothing();
  if (!cargo_->has_to_tell()) {
    works_ = cargo_->works();
    const std::uint64_t memory = cargo_->memory_mark();
    if (memory != 0 && size_bytes_ <= config().ccl_graph_bytes)
      offered = group_.replays->offer(works_, memory);
  }
  turn_->tell(offered);
}

Status CclExchange::launch() {
  if (works_.empty()) return {};
  const auto enqueue = [this](void* stream) {
    if (decision_.way != CclReplays::Way::replay)
      return group_.communicator->enqueue(works_, stream);
    ACCORD_TRY(group_.communicator->usable());
    return group_.replays->recording(decision_.slot).put(stream);
  };
  if (decision_.way == CclReplays::Way::record) record();
  // Also after an error: what is on the stream all the same ends with the communicator.
  launched_ = true;
  ACCORD_TRY(group_.stream->enqueue(enqueue));
  if (decision_.way == CclReplays::Way::replay)
    calls_replayed.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// For later calls; this one goes as if nothing had been recorded, so that a rank that has failed
// can take part in it.
void CclExchange::record() {
  // A runtime may keep it.
  const auto record = [works = works_, communicator = group_.communicator.get()](void* stream) {
    return communicator->enqueue(works, stream);
  };
  std::unique_ptr<device::Recording> made;
  const Status status = group_.stream->record(record, made);
  if (status.ok()) {
    group_.replays->keep(decision_.slot, works_, cargo_->memory_mark(), std::move(made));
  } else {
    log::info("calls of {} are not recorded: {}", group_.library.name(), status.message());
    group_.replays->give_up();
  }
}

Status CclExchange::poll(device::CopyTicket& ticket, bool& done) {
  done = ticket.handle == nullptr;
  return done ? Status() : runtime().copy_done(ticket, done);
}

Status CclExchange::poll_library(bool& done) {
  done = !launched_;
  if (done) return {};
  const Status status = group_.stream->poll(done);
  launched_ = !done;
  return status;
}

}  // namespace accord::coll
