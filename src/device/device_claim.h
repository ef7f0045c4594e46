// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One process of a machine at a time: who may keep a kernel on a device that waits for others. A
// device serves one process after the other, so two such kernels would keep each other from running
// for milliseconds. Knows no vendor. Called by runtimes, thread-safe.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace accord::device {

// Claims the device of this number, which differs for devices that are different, until the process
// ends. unsupported where another process has it; again, in the same process, is no error.
Status claim_device(std::uint64_t device);

}  // namespace accord::device
