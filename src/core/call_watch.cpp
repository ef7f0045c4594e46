// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/call_watch.h"

#include <fmt/format.h>

#include <cstdlib>

namespace accord::core {
namespace {

Status difference(std::size_t rank, const node::CallEntry& its, const node::CallEntry& mine) {
  const std::string what = its.size_bytes != mine.size_bytes
                               ? fmt::format("of {} bytes, and this rank one of {} bytes",
                                             its.size_bytes, mine.size_bytes)
                               : "with another operation, type or root, or another kind of call";
  return {StatusCode::mismatch,
          fmt::format("the ranks of this communicator made different collective calls: rank {} "
                      "made one {}",
                      rank, what)};
}

Status left_by(std::size_t rank) {
  return {
      StatusCode::mismatch,
      fmt::format("rank {} has had an error before the ranks agreed on the way of this call, or "
                  "of an earlier one of its communicator",
                  rank)};
}

}  // namespace

// Tests look sooner, so that a difference which is none shows.
std::chrono::milliseconds Patience::limit() {
  static const char* const given = std::getenv("ACCORD_TEST_WATCH_MS");
  static const std::chrono::milliseconds limit{given != nullptr ? std::atoi(given) : 200};
  return limit;
}

std::atomic<bool> CallWatch::has_boards{true};
std::atomic<bool> CallWatch::anyone_refused{false};

CallWatch::~CallWatch() {
  if (own_line_ != nullptr && is_watched()) node::VoteBoard::give_back(*own_line_);
}

CallWatch::Difference CallWatch::look(const node::CallEntry& mine) const {
  Difference found;
  if (!is_watched()) return {};
  found.status = left_by_peer(mine);
  found.has_left = !found.status.ok();
  if (found.has_left || mine.number == 0) return found;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank] == nullptr) continue;
    node::CallEntry its;
    if (!peers_[rank]->read(mine.comm, mine.number, its)) return {};
    if (found.status.ok() && !its.is_like(mine)) found.status = difference(rank, its, mine);
    found.by_host = found.by_host || (its.by_host() && !mine.by_host());
  }
  return found;
}

// A call without a number is none that peers count: nobody who has left has a part in it.
Status CallWatch::left_by_peer(const node::CallEntry& mine) const {
  const std::uint64_t number = mine.number != 0 ? mine.number : node::VoteLine::kNever - 1;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (peers_[rank] != nullptr && peers_[rank]->votes().read(comm_).left_at <= number)
      return left_by(rank);
  return {};
}

std::uint64_t CallWatch::begin_vote() noexcept {
  if (!is_watched()) return 0;
  if (own_line_ == nullptr) own_line_ = own_->votes().take(comm_);
  return ++votes_;
}

void CallWatch::end_vote(std::uint64_t vote) noexcept {
  if (own_line_ != nullptr && is_watched()) own_line_->votes.store(vote);
}

// Who has voted had a line before. One that has none any more had no room for it, or needs it no
// longer.
Status CallWatch::is_ended(std::uint64_t vote, bool looks, bool& ended) const {
  ended = true;
  if (vote == 0 || !is_watched()) return {};
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank] == nullptr) continue;
    const node::VoteBoard::Said said = peers_[rank]->votes().read(comm_);
    if (!said.anything || said.votes >= vote) continue;
    if (said.left_at != node::VoteLine::kNever) return left_by(rank);
    if (!looks || !is_gone_ || !is_gone_(rank)) ended = false;
  }
  return {};
}

void CallWatch::leave(const node::CallEntry& call) noexcept {
  break_up();
  anyone_refused.store(true, std::memory_order_relaxed);
  if (left_.exchange(true) || !is_watched()) return;
  if (own_line_ == nullptr) own_line_ = own_->votes().take(comm_);
  if (own_line_ != nullptr) own_line_->left_at.store(call.number != 0 ? call.number : calls_ + 1);
}

void CallWatch::expect_telling() noexcept {
  anyone_refused.store(true, std::memory_order_relaxed);
  ++untold_;
}

Status CallWatch::refusal() const {
  if (!refuses()) return {};
  return {StatusCode::mismatch,
          "an earlier collective of this communicator has failed before all ranks had their part "
          "in it: this one could be taken for it"};
}

}  // namespace accord::core
