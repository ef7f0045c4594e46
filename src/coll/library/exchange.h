// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective by a collective library: one step on a stream of its own, once it is this call's
// turn (turn.h).
#pragma once

#include <memory>
#include <vector>

#include "coll/coll_args.h"
#include "coll/exchange.h"
#include "coll/library/cargo.h"
#include "coll/library/group.h"
#include "coll/library/turn.h"

namespace accord::coll {

class CclExchange final : public Exchange {
 public:
  // Both outlive the exchange.
  CclExchange(CclGroup& group, const CollArgs& args, CclTurn::Company company,
              CclTurn::Process process = CclTurn::Process::busy);

  Status advance(bool& done) override;
  bool has_block_of(int peer) const override { return cargo_->has_block_of(peer); }
  void stop(bool& done) override;
  const char* path() const noexcept override { return group_.library.name(); }

  // Counts a call that was to go by a library and goes another way.
  static void count_other_way() noexcept;
  // Says how many went how, to those who listen at level info.
  static void report();

 private:
  enum class State { begin, packing, entering, meeting, starting, running, unpacking, done };

  void offer();
  Status launch();
  void record();
  Status poll(device::CopyTicket& ticket, bool& done);
  Status poll_library(bool& done);
  Status check();
  device::DeviceRuntime& runtime() const { return group_.mailboxes().runtime(); }

  CclGroup& group_;
  const std::size_t size_bytes_;
  std::unique_ptr<CclTurn> turn_;
  std::unique_ptr<CclCargo> cargo_;
  State state_ = State::begin;
  device::CopyTicket copy_in_;
  device::CopyTicket copy_out_;
  std::vector<ccl::Work> works_;
  bool offered_ = false;  // this rank's replays are asked
  CclReplays::Decision decision_;
  bool launched_ = false;  // and not yet known to have ended
  unsigned checks_ = 0;
};

}  // namespace accord::coll
