// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The runtime of a vendor whose functions are CUDA's, or twins of these. Called by
// cuda/runtime.cpp for NVIDIA and by hip/runtime.cpp for AMD.
#pragma once

#include "device/cuda/driver.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {

// What differs besides the table of functions.
struct Vendor {
  const char* name;
  // Null where there is no driver, or where nothing of it can be in use yet. Often called.
  const Driver* (*driver)() noexcept;
  // The same, for a call that asks for a device: loads the driver where there is one.
  const Driver* (*open_driver)() noexcept;
  // Whether driver() may ever be more than null.
  bool (*active)() noexcept;
  // What files and the environment tell, where the driver is not initialised.
  bool (*device_is_visible)() noexcept;
  // What files alone tell, whatever the environment hides.
  bool (*device_exists)() noexcept;
  Status (*problem)();
  const char* no_driver;  // the error where there is none
};

// Lives for good, and refers to `vendor`.
DeviceRuntime& make_runtime(const Vendor& vendor);

}  // namespace accord::device::cuda
