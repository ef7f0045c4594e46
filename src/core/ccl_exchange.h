// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective by a collective library: one step on a stream of its own, once it is this call's
// turn (ccl_turn.h). Ends that the library cannot take (host memory, derived types, memory of
// another device, addresses that are no multiple of the element) pass through device memory of our
// own, which is a matter of this rank alone.
#pragma once

#include <cstdint>

#include "core/ccl_group.h"
#include "core/ccl_plan.h"
#include "core/ccl_turn.h"
#include "core/collective.h"
#include "core/exchange.h"

namespace accord::core {

class CclExchange final : public Exchange {
 public:
  // Both outlive the exchange.
  CclExchange(CclGroup& group, const Pipeline& pipeline, CclTurn::Company company);

  Status advance(bool& done) override;
  void stop(bool& done) override;
  const char* path() const noexcept override { return group_.library.name(); }

  // Counts a call that was to go by a library and goes another way.
  static void count_other_way() noexcept;
  // Says how many went how, to those who listen at level info.
  static void report();

 private:
  enum class State { begin, packing, waiting, running, unpacking, done };

  bool is_direct(const PipelineEnd& end, CclPlan::Range range) const;
  void choose_places();
  Status begin();
  Status launch();
  Status unpack();
  Status copy(const PipelineEnd& end, PipelineEnd::Direction direction, CclPlan::Range range,
              std::byte* packed, device::CopyTicket& ticket);
  Status poll(device::CopyTicket& ticket, bool& done);
  Status check();
  device::DeviceRuntime& runtime() const { return group_.mailboxes().runtime(); }
  std::byte* for_library(std::byte* pointer) const;

  CclGroup& group_;
  const Pipeline& pipeline_;
  const CclPlan plan_;
  CclTurn turn_;
  State state_ = State::begin;
  bool in_direct_ = true;
  bool out_direct_ = true;
  std::byte* in_ = nullptr;   // what the library reads,
  std::byte* out_ = nullptr;  // and writes
  device::CopyTicket copy_in_;
  device::CopyTicket work_;
  device::CopyTicket copy_out_;
  device::CopyTicket second_copy_out_;  // of what lies behind a block that is kept
  unsigned checks_ = 0;
};

}  // namespace accord::core
