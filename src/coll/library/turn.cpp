// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/turn.h"

#include <algorithm>

namespace accord::coll {
namespace {

// Whether `holds` says so of every rank's mailbox. Looks at all of them in any case: mailboxes that
// peers have written come from their caches, and so they come at the same time.
template <class Holds>
bool of_all(node::Group& group, Holds holds) {
  bool all = true;
  for (int peer = 0; peer < group.size(); ++peer) {
    const bool one = holds(group.mailbox(peer));
    all = all && one;
  }
  return all;
}

}  // namespace

CclPlace& CclPlace::of_this_process() noexcept {
  static CclPlace& place = *new CclPlace;  // calls may come until the process ends
  return place;
}

void CclPlace::wait(const CclTurn& turn, std::uint64_t precedence) {
  const std::lock_guard locked(mutex_);
  waiting_.push_back({&turn, precedence});
}

bool CclPlace::take(const CclTurn& turn, std::uint64_t precedence) {
  const std::lock_guard locked(mutex_);
  const bool is_first = std::ranges::all_of(
      waiting_, [=](const Waiting& other) { return other.precedence >= precedence; });
  if (holder_ == nullptr && is_first) holder_ = &turn;
  return holder_ == &turn;
}

void CclPlace::give_back(const CclTurn& turn) {
  const std::lock_guard locked(mutex_);
  if (holder_ == &turn) holder_ = nullptr;
}

void CclPlace::leave(const CclTurn& turn) {
  const std::lock_guard locked(mutex_);
  std::erase_if(waiting_, [&](const Waiting& other) { return other.turn == &turn; });
  if (holder_ == &turn) holder_ = nullptr;
}

CclNodeTurn::CclNodeTurn(node::Group& group, std::uint64_t number, Company company, Process process,
                         CclPlace& place)
    : group_(group),
      company_(company),
      process_(process),
      place_(place),
      call_(group.take(1)),
      precedence_(company == Company::none ? 0 : number) {}

bool CclNodeTurn::may_tell() const {
  return state_ != State::begin ||
         all_saw(group_.own_mailbox().reduced.load(std::memory_order_relaxed) >> 1);
}

// A rank that is in the next call may write there before all have read this one's word; to come to
// the one after that it needs all in the next.
void CclNodeTurn::tell(std::uint64_t word) noexcept {
  group_.own_mailbox().told[call_ % 2].store(word, std::memory_order_relaxed);
}

std::uint64_t CclNodeTurn::told_by_all() const noexcept {
  std::uint64_t common = ~std::uint64_t{0};
  for (int peer = 0; peer < group_.size(); ++peer)
    common &= group_.mailbox(peer).told[call_ % 2].load(std::memory_order_relaxed);
  return common;
}

// Some may not have read this rank's answer for the call before. What they find instead, once it
// has its place from the start, tells them no less: the other answer was a yes, too, since that
// call has come.
void CclNodeTurn::enter() {
  node::Mailbox& own = group_.own_mailbox();
  attempt_ = (own.reduced.load(std::memory_order_relaxed) >> 1) + 1;
  is_placed_ = process_ == Process::idle && place_.take(*this, precedence_);
  if (is_placed_) answer(true);
  own.filled.store(call_ + 1, std::memory_order_release);
  state_ = State::entering;
}

bool CclNodeTurn::all_entered() {
  if (state_ != State::entering) return true;
  const bool all = of_all(group_, [this](const node::Mailbox& peer) {
    return peer.filled.load(std::memory_order_acquire) > call_;
  });
  if (!all) return false;
  if (!is_placed_) place_.wait(*this, precedence_);
  state_ = is_placed_ ? State::answered : State::trying;
  return true;
}

bool CclNodeTurn::comes() {
  switch (state_) {
    case State::trying: {
      if (!all_saw(attempt_ - 1)) break;
      const bool placed = place_.take(*this, precedence_);
      if (!placed && company_ == Company::none) break;
      answer(placed);
      state_ = State::answered;
      [[fallthrough]];
    }
    case State::answered: {
      if (!all_answered()) break;
      if (!all_say_yes()) {
        try_again();
        break;
      }
      state_ = State::granted;
      [[fallthrough]];
    }
    case State::granted:
    case State::running:
      return true;
    case State::begin:
    case State::entering:
    case State::ended:
      break;
  }
  return false;
}

// Not earlier: peers may yet have to read this mailbox, and shall not wait for it to come back.
void CclNodeTurn::started() {
  if (state_ != State::granted) return;
  note_answers();
  state_ = State::running;
}

void CclNodeTurn::end() {
  started();
  if (state_ != State::ended) place_.leave(*this);
  state_ = State::ended;
}

void CclNodeTurn::answer(bool yes) {
  group_.own_mailbox().reduced.store(attempt_ << 1 | (yes ? 1 : 0), std::memory_order_release);
}

void CclNodeTurn::note_answers() {
  group_.own_mailbox().drained.store(attempt_, std::memory_order_release);
}

void CclNodeTurn::try_again() {
  note_answers();
  place_.give_back(*this);
  ++attempt_;
  state_ = State::trying;
}

bool CclNodeTurn::all_saw(std::uint64_t attempt) const {
  return of_all(group_, [=](const node::Mailbox& peer) {
    return peer.drained.load(std::memory_order_acquire) >= attempt;
  });
}

// One can be further, with a yes to the next call (enter); an answer of any other kind waits until
// this rank has seen all.
bool CclNodeTurn::all_answered() const {
  return of_all(group_, [this](const node::Mailbox& peer) {
    return peer.reduced.load(std::memory_order_acquire) >> 1 >= attempt_;
  });
}

bool CclNodeTurn::all_say_yes() const {
  return of_all(group_, [](const node::Mailbox& peer) {
    return (peer.reduced.load(std::memory_order_relaxed) & 1) != 0;
  });
}

}  // namespace accord::coll
