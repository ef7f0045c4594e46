// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/far_turn.h"

namespace accord::coll {

CclFarTurn::CclFarTurn(CclRollCall& ranks, std::uint64_t number, Company company, Process process,
                       CclPlace& place)
    : ranks_(ranks),
      company_(company),
      process_(process),
      place_(place),
      precedence_(company == Company::none ? 0 : number) {}

void CclFarTurn::ask(bool yes) { ranks_.ask({yes ? std::uint64_t{1} : 0, word_}); }

void CclFarTurn::enter() {
  is_placed_ = process_ == Process::idle && place_.take(*this, precedence_);
  ask(is_placed_);
  state_ = State::entering;
}

// Who has its place from the start keeps it: there is no company that could need it.
bool CclFarTurn::all_entered() {
  if (state_ != State::entering) return true;
  if (!ranks_.all_told() || !ranks_.answered()) return false;
  told_by_all_ = ranks_.common()[1];
  if (all_say_yes()) {
    state_ = State::granted;
    return true;
  }
  if (!is_placed_) place_.wait(*this, precedence_);
  state_ = State::trying;
  return true;
}

bool CclFarTurn::comes() {
  if (state_ == State::trying) {
    const bool placed = place_.take(*this, precedence_);
    if (!placed && company_ == Company::none) return false;
    ask(placed);
    state_ = State::asked;
  }
  if (state_ == State::asked && ranks_.answered()) {
    state_ = all_say_yes() ? State::granted : State::trying;
    if (state_ == State::trying) place_.give_back(*this);
  }
  return state_ == State::granted;
}

void CclFarTurn::end() {
  if (state_ != State::ended) place_.leave(*this);
  state_ = State::ended;
}

}  // namespace accord::coll
