// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/inbox.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "device/launched_inbox.h"
#include "device/level_zero/inbox_lane.h"
#include "device/level_zero/modules.h"

namespace accord::device::level_zero {
namespace {

// Never destroyed: at exit the driver may be gone before us.
struct Servers {
  std::mutex mutex;
  std::map<int, std::unique_ptr<launched::Server>> by_device;
};

// Who lacks the kernels that combine nothing takes no part.
Status find_kernels(const Driver& driver, const Device& device) {
  bool runs = false;
  ACCORD_TRY(has_inboxes(driver, device, runs));
  if (!runs) {
    return Status(StatusCode::unsupported,
                  "level_zero inboxes: no kernels on this device, or no atomics of 64 bits");
  }
  Kernel* kernel = nullptr;
  ACCORD_TRY(find_kernel(driver, device, "inbox", launched::kSend, kernel));
  return find_kernel(driver, device, "inbox", launched::receiving_kernel({}).kernel, kernel);
}

}  // namespace

Status inbox_server(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                    InboxServer*& server) {
  static Servers& servers = *new Servers;
  ACCORD_TRY(find_kernels(driver, device));
  const std::lock_guard lock(servers.mutex);
  std::unique_ptr<launched::Server>& known = servers.by_device[index];
  if (known == nullptr) {
    const auto make_lane = [&driver, &device](std::uint32_t number) {
      return std::make_unique<InboxLane>(driver, device, number);
    };
    auto made = std::make_unique<launched::Server>(runtime, index, device.context, make_lane);
    ACCORD_TRY(made->open());
    known = std::move(made);
  }
  server = known.get();
  return Status();
}

}  // namespace accord::device::level_zero
