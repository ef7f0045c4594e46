// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The GPUs of all drivers that Level Zero has, and a context of our own for each driver. Memory of
// the program's contexts is reached through it too: Intel's driver keeps one table of allocations
// for all contexts of a driver, so what a pointer is, and whether it can be copied or exported,
// does not depend on the context that is asked. Called in this folder only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "device/device_runtime.h"
#include "device/level_zero/driver.h"

namespace accord::device::level_zero {

// Engines of a device: a group of command queues, and how many of it there are.
struct Engines {
  std::uint32_t group = 0;
  std::uint32_t queues = 0;
};

struct Device {
  ze_context_handle_t context = nullptr;
  ze_device_handle_t handle = nullptr;
  Engines copy;     // those that only copy, where it has some
  Engines compute;  // no queue: it runs no kernels
};

struct Devices {
  Status status;  // the first thing that went wrong while they were looked for
  std::vector<Device> all;
  std::vector<ze_context_handle_t> contexts;                // one a driver with a GPU
  std::unordered_map<ze_device_handle_t, int> indices;      // of devices, and of the tiles of each
  std::unordered_map<ze_context_handle_t, int> first_ones;  // a context's first device

  // The device that a pointer's properties name; null (host and shared memory): the first one.
  int index_of(ze_device_handle_t handle, ze_context_handle_t context) const;
};

// Looks for them at the first call, which is when Level Zero is initialised. A driver that does not
// answer is left out.
const Devices& devices(const Driver& driver);

// The same, where that has been done; else null.
const Devices* devices_if_known() noexcept;

// Of lane `number` of these engines, over which lanes spread.
ze_command_queue_desc_t queue_description(const Engines& engines, std::uint32_t number);

Status describe(const Driver& driver, const Device& device, DeviceDescription& description);
std::vector<DeviceLink> links(const Driver& driver);

}  // namespace accord::device::level_zero
