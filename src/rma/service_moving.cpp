// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What of a window goes by a transport: its origin's and its target's part. All with the service's
// lock held.
#include <algorithm>
#include <utility>

#include "base/peer_status.h"
#include "rma/service.h"

namespace accord::rma {

using message::Kind;

// Of a put: it is done once it has been fetched and the target has replied.
void Service::offer(int target, Header& header, const net::Memory& from) {
  Moving& moving = moving_.emplace_back();
  moving.end = transports_->find(header.transport)->offer(target, from, header.offer);
  moving.asked = header.number;
  ++asked_.at(header.number).left;
}

// A put or get between its origin's memory and this rank's.
Status Service::move_for_peer(const Header& question, const Piece& run) {
  net::Transport* const transport =
      transports_ != nullptr ? transports_->find(question.transport) : nullptr;
  if (transport == nullptr)
    return answer(question, {StatusCode::unsupported, "a transport that the target has not"});
  const bool fetches = question.kind == Kind::put;
  std::byte* start = nullptr;
  const Status located = own_.locate(run, start);
  if (!located.ok()) {
    if (fetches) transport->dismiss(question.from, question.offer);
    return answer(question, located);
  }
  const net::Memory memory{start, static_cast<std::size_t>(run.length_bytes), own_.memory().where};
  Moving& moving = moving_.emplace_back();
  if (fetches) {
    moving.end = transport->fetch(question.from, question.offer, memory);
    moving.question = question;
    moving.is_answered = false;
    return {};
  }
  net::Transport::Name offered = 0;
  moving.end = transport->offer(question.from, memory, offered);
  return answer(question, {}, {}, offered);
}

// Each look goes on with all that the network has: a few are enough, by turns.
Status Service::look_at_moving() {
  constexpr std::size_t kLooksMax = 16;
  for (std::size_t looks = std::min(kLooksMax, moving_.size()); looks > 0; --looks) {
    bool has_ended = false;
    const Status status = moving_.front().end->poll(has_ended);
    if (!has_ended) {
      moving_.splice(moving_.end(), moving_, moving_.begin());
      continue;
    }
    const Moving moved = std::move(moving_.front());
    moving_.pop_front();
    if (moved.asked != 0) end_part(moved.asked, status);
    if (!moved.is_answered && broken_.ok() && check_peer(lines_, moved.question.from).ok())
      ACCORD_TRY(answer(moved.question, status));
  }
  return {};
}

// What it offers and nobody has come for.
void Service::stop_moving(std::uint64_t number) noexcept {
  for (const Moving& moving : moving_)
    if (moving.asked == number) moving.end->stop();
}

}  // namespace accord::rma
