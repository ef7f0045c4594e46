// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels that the library carries as SPIR-V, of which a driver makes machine code when the first
// one of a module is needed, and whether they can address the memory they are given. Called in
// this folder only.
#pragma once

#include <mutex>
#include <string>

#include "device/device_runtime.h"
#include "device/level_zero/devices.h"

namespace accord::device::level_zero {

// A kernel of one device. Its arguments are part of it until it is appended to a list: `mutex` is
// held from setting them to that.
struct Kernel {
  ze_kernel_handle_t handle = nullptr;
  std::mutex mutex;
};

// Whether there are kernels that the device might run.
bool has_kernels(const Device& device);

// Whether it can run those of reductions, all of them: they take double precision. Asked once for
// each device; false where an error kept the answer back.
bool has_reductions(const Driver& driver, const Device& device);

// Whether it can run those of inboxes, which take atomic accesses of 64 bits.
Status has_inboxes(const Driver& driver, const Device& device, bool& runs);

// Found once for each device, and kept for good. unsupported where the driver does not take the
// module, which is not tried again, or the library has none.
Status find_kernel(const Driver& driver, const Device& device, const std::string& module,
                   const std::string& name, Kernel*& kernel);

// Memory that kernels of `device`, number `index` of the runtime, are to touch, from the first byte
// to the last one: invalid_argument where it is not the runtime's, unsupported where they do not
// reach all of it.
Status check_reach(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                   const void* first, const void* last);

}  // namespace accord::device::level_zero
