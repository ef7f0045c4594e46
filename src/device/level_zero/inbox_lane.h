// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What runs one inbox exchange at a time: the kernels' parameter, which is host memory, and lists
// of the kernels that read it. A list is recorded once and then executed for each exchange of its
// kind, which takes one call of the driver. Called by level_zero/inbox.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "device/launched_inbox.h"
#include "device/level_zero/devices.h"
#include "device/level_zero/modules.h"

namespace accord::device::level_zero {

class InboxLane final : public launched::Lane {
 public:
  // The `number` spreads lanes over the engines.
  InboxLane(const Driver& driver, const Device& device, std::uint32_t number)
      : driver_(driver), device_(device), number_(number) {}
  ~InboxLane() override;

  Status open() override;
  Status begin(const InboxTicket& ticket) override;
  Status poll(bool& ended, bool& complete) override;
  bool usable() const noexcept override { return usable_; }

 private:
  struct Recorded {
    const Kernel* receive;  // behind the kernel that sends
    std::uint32_t groups;
    ze_command_list_handle_t list;
  };

  Status find_kernels(const InboxExchange& exchange, Kernel*& send, Kernel*& receive) const;
  Status find_list(Kernel& send, Kernel& receive, std::uint32_t groups,
                   ze_command_list_handle_t& list);
  Status record(ze_command_list_handle_t list, Kernel& send, Kernel& receive, std::uint32_t groups);
  Status append(ze_command_list_handle_t list, Kernel& kernel, std::uint32_t groups);

  const Driver& driver_;
  const Device& device_;
  const std::uint32_t number_;
  bool usable_ = true;
  launched::InboxParameters* parameters_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
  std::vector<Recorded> recorded_;
};

}  // namespace accord::device::level_zero
