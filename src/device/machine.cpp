// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/machine.h"

#include "device/cuda_driver.h"
#include "device/hip_driver.h"
#include "device/registry.h"

namespace accord::device {

// What other vendors' runtimes call present they tell by files, whatever the environment hides.
bool accelerator_on_machine() {
  return accelerator_present() || cuda::device_exists() || hip::device_exists();
}

}  // namespace accord::device
