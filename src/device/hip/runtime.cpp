// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// AMD GPUs: the runtime of cuda/runtime.cpp over HIP's functions (hip/driver.h). It has no kernels
// for partitions, and exports neither memory of pools nor of the virtual memory functions.
#include "device/cuda/runtime.h"

#include "device/hip/driver.h"

namespace accord::device {

DeviceRuntime& hip_runtime();

namespace {

constexpr cuda::Vendor kAmd{.name = "hip",
                            .driver = hip::driver,
                            .open_driver = hip::open_driver,
                            .active = hip::may_be_used,
                            .device_is_visible = hip::device_is_visible,
                            .device_exists = hip::device_exists,
                            .problem = hip::problem,
                            .no_driver = "hip: no AMD GPU with HIP (libamdhip64) here"};

}  // namespace

DeviceRuntime& hip_runtime() {
  static DeviceRuntime& runtime = cuda::make_runtime(kAmd);
  return runtime;
}

}  // namespace accord::device
