// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What runs one inbox exchange at a time: the kernels' parameter, which is host memory, and lists
// of the kernels that read it. A list is recorded once and then executed for each exchange of its
// kind, which takes one call of the driver. Called by level_zero_inbox.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "device/inbox_server.h"
#include "device/level_zero_devices.h"
#include "device/level_zero_kernels.h"
#include "device/level_zero_modules.h"

namespace accord::device::level_zero {

class InboxLane {
 public:
  // The `number` spreads lanes over the engines.
  InboxLane(const Driver& driver, const Device& device, std::uint32_t number)
      : driver_(driver), device_(device), number_(number) {}
  InboxLane(const InboxLane&) = delete;
  InboxLane& operator=(const InboxLane&) = delete;
  ~InboxLane();

  // Memory and queue, without which the lane is of no use.
  Status open();

  // Launches `send`, and behind it `receive`. After an error nothing is in flight.
  Status begin(Kernel& send, Kernel& receive, const InboxTicket& ticket);
  // `ended`: the kernels have; `complete`: and all had come. After an error the device does not
  // touch the exchange's memory any more, as far as it answers.
  Status poll(bool& ended, bool& complete);

  // Whether it can be used again: not after an error.
  bool usable() const noexcept { return usable_; }

 private:
  struct Recorded {
    const Kernel* receive;  // behind the kernel that sends
    std::uint32_t groups;
    ze_command_list_handle_t list;
  };

  Status find_list(Kernel& send, Kernel& receive, std::uint32_t groups,
                   ze_command_list_handle_t& list);
  Status record(ze_command_list_handle_t list, Kernel& send, Kernel& receive, std::uint32_t groups);
  Status append(ze_command_list_handle_t list, Kernel& kernel, std::uint32_t groups);

  const Driver& driver_;
  const Device& device_;
  const std::uint32_t number_;
  bool usable_ = true;
  InboxParameters* parameters_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
  std::vector<Recorded> recorded_;
};

}  // namespace accord::device::level_zero
