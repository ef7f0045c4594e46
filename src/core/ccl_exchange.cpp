// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/ccl_exchange.h"

#include <atomic>
#include <span>

#include "base/log.h"
#include "base/stages.h"

namespace accord::core {
namespace {

// Polls between two looks after the library and the peers.
constexpr unsigned kPollsPerCheck = 256;
// Between what is read and what is written in our own memory.
constexpr std::size_t kScratchAlignmentBytes = 256;

std::atomic<std::uint64_t> calls_done{0};
std::atomic<std::uint64_t> calls_other_way{0};

bool overlap(const std::byte* one, std::size_t one_bytes, const std::byte* other,
             std::size_t other_bytes) {
  return one < other + other_bytes && other < one + one_bytes;
}

}  // namespace

CclExchange::CclExchange(CclGroup& group, const Pipeline& pipeline, CclTurn::Company company)
    : group_(group),
      pipeline_(pipeline),
      plan_(group.library, *pipeline.exchange, pipeline.rank, pipeline.in_place),
      turn_(group.mailboxes(), group.number, company) {}

void CclExchange::count_other_way() noexcept {
  calls_other_way.fetch_add(1, std::memory_order_relaxed);
}

void CclExchange::report() {
  const std::uint64_t done = calls_done.load(std::memory_order_relaxed);
  const std::uint64_t other_way = calls_other_way.load(std::memory_order_relaxed);
  if (done + other_way == 0) return;
  log::info("ccl: {} collectives by a collective library, {} that were to go by one another way",
            done, other_way);
}

Status CclExchange::advance(bool& done) {
  bool ready = false;
  switch (state_) {
    case State::begin:
      stages::enter(stages::Stage::copy_in);
      ACCORD_TRY(begin());
      state_ = State::packing;
      [[fallthrough]];
    case State::packing:
      ACCORD_TRY(poll(copy_in_, ready));
      if (!ready) break;
      state_ = State::waiting;
      stages::enter(stages::Stage::wait);
      [[fallthrough]];
    case State::waiting:
      if (!turn_.comes()) break;
      stages::enter(stages::Stage::move);
      ACCORD_TRY(launch());
      state_ = State::running;
      [[fallthrough]];
    case State::running:
      ACCORD_TRY(poll(work_, ready));
      if (!ready) break;
      // What failed may have ended all the same.
      ACCORD_TRY(group_.communicator->check());
      turn_.end();
      stages::enter(stages::Stage::copy_out);
      ACCORD_TRY(unpack());
      state_ = State::unpacking;
      [[fallthrough]];
    case State::unpacking: {
      bool second_ready = false;
      ACCORD_TRY(poll(copy_out_, ready));
      ACCORD_TRY(poll(second_copy_out_, second_ready));
      if (!ready || !second_ready) break;
      calls_done.fetch_add(1, std::memory_order_relaxed);
      state_ = State::done;
      [[fallthrough]];
    }
    case State::done:
      break;
  }
  done = state_ == State::done;
  return done ? Status() : check();
}

Status CclExchange::check() {
  if (++checks_ % kPollsPerCheck != 0) return {};
  if (state_ == State::running) ACCORD_TRY(group_.communicator->check());
  return group_.mailboxes().check_peers();
}

// What a kernel of the library still waits for ends with its communicator, here and on the peers,
// which see that this rank has given up.
void CclExchange::stop(bool& done) {
  group_.give_up();
  done = true;
  for (device::CopyTicket* ticket : {&copy_in_, &work_, &copy_out_, &second_copy_out_}) {
    bool ended = true;
    if (!poll(*ticket, ended).ok()) ended = true;
    done = done && ended;
  }
  if (done) turn_.end();
}

bool CclExchange::is_direct(const PipelineEnd& end, CclPlan::Range range) const {
  if (range.length_bytes == 0) return true;
  if (!end.usable_by(runtime(), group_.mailboxes().device())) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(end.address(range.first_bytes));
  return address % plan_.alignment_bytes() == 0;
}

void CclExchange::choose_places() {
  const auto in = plan_.in();
  const auto out = plan_.out();
  in_direct_ = is_direct(pipeline_.in, in);
  out_direct_ = is_direct(pipeline_.out, out);
  if (in_direct_ && in.length_bytes != 0) in_ = pipeline_.in.address(in.first_bytes);
  if (out_direct_ && out.length_bytes != 0) out_ = pipeline_.out.address(out.first_bytes);
  // The shorter of the two goes elsewhere, which is never what is read alone.
  if (plan_.needs_apart() && in_ != nullptr && out_ != nullptr &&
      overlap(in_, in.length_bytes, out_, out.length_bytes)) {
    out_direct_ = false;
    out_ = nullptr;
  }
}

Status CclExchange::begin() {
  choose_places();
  const auto in = plan_.in();
  const auto out = plan_.out();
  const std::size_t in_bytes = in_direct_ ? 0
                                          : (in.length_bytes + kScratchAlignmentBytes - 1) /
                                                kScratchAlignmentBytes * kScratchAlignmentBytes;
  const std::size_t out_bytes = out_direct_ ? 0 : out.length_bytes;
  if (in_bytes + out_bytes == 0) return {};
  std::byte* scratch = nullptr;
  ACCORD_TRY(group_.scratch(in_bytes + out_bytes, scratch));
  if (!out_direct_) out_ = scratch + in_bytes;
  if (in_direct_) return {};
  in_ = scratch;
  return copy(pipeline_.in, PipelineEnd::Direction::pack, in, in_, copy_in_);
}

Status CclExchange::launch() {
  const auto works = plan_.works(for_library(in_), for_library(out_));
  if (works.empty()) return {};
  return runtime().enqueue_begin(
      group_.mailboxes().device(),
      [&](void* stream) { return group_.communicator->enqueue(works, stream); }, work_);
}

Status CclExchange::unpack() {
  if (out_direct_) return {};
  const auto out = plan_.out();
  const auto kept = plan_.kept();
  const std::size_t behind = kept.first_bytes + kept.length_bytes;
  const auto direction = PipelineEnd::Direction::unpack;
  ACCORD_TRY(copy(pipeline_.out, direction, {0, kept.first_bytes}, out_, second_copy_out_));
  return copy(pipeline_.out, direction, {behind, out.length_bytes - behind}, out_ + behind,
              copy_out_);
}

Status CclExchange::copy(const PipelineEnd& end, PipelineEnd::Direction direction,
                         CclPlan::Range range, std::byte* packed, device::CopyTicket& ticket) {
  if (range.length_bytes == 0) return {};
  const CopyBatch batch = end.copies(direction, range.first_bytes, range.length_bytes, packed);
  return batch.empty() ? Status()
                       : runtime().batch_begin(group_.mailboxes().device(), batch, ticket);
}

Status CclExchange::poll(device::CopyTicket& ticket, bool& done) {
  done = ticket.handle == nullptr;
  return done ? Status() : runtime().copy_done(ticket, done);
}

std::byte* CclExchange::for_library(std::byte* pointer) const {
  if (pointer == nullptr) return nullptr;
  return static_cast<std::byte*>(runtime().address_for_library(pointer));
}

}  // namespace accord::core
