// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The turn of a call whose ranks are on several nodes: the same rule, by what they tell each other
// in messages. The first roll call tells that all have entered, with an answer of those that have
// their place already; each later one is an attempt of all at their places.
#pragma once

#include <cstdint>

#include "coll/library/roll_call.h"
#include "coll/library/turn.h"

namespace accord::coll {

class CclFarTurn final : public CclTurn {
 public:
  // `ranks` outlives it; `number` is equal on all of them.
  CclFarTurn(CclRollCall& ranks, std::uint64_t number, Company company,
             Process process = Process::busy, CclPlace& place = CclPlace::of_this_process());
  ~CclFarTurn() override { end(); }

  bool may_tell() const override { return true; }
  void tell(std::uint64_t word) noexcept override { word_ = word; }
  void enter() override;
  bool all_entered() override;
  std::uint64_t told_by_all() const noexcept override { return told_by_all_; }
  bool comes() override;
  void started() override {}
  void end() override;

 private:
  enum class State { begin, entering, trying, asked, granted, ended };

  void ask(bool yes);
  bool all_say_yes() const noexcept { return ranks_.common()[0] != 0; }

  CclRollCall& ranks_;
  const Company company_;
  const Process process_;
  CclPlace& place_;
  const std::uint64_t precedence_;
  std::uint64_t word_ = 0;
  std::uint64_t told_by_all_ = 0;
  bool is_placed_ = false;  // from the start
  State state_ = State::begin;
};

}  // namespace accord::coll
