// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges on NVIDIA GPUs: kernels that stay on the device for a while after each exchange
// (cuda/inbox_kernel.cu), rung by the host. Called by cuda/runtime.cpp.
#pragma once

#include "device/cuda/copy.h"
#include "device/cuda/driver.h"
#include "device/inbox_server.h"

namespace accord::device::cuda {

// Differs for devices that are different, in all processes of the machine; 0: not known.
std::uint64_t device_number(const Driver& driver, int device);

// The server of the entered context. unsupported where the kernel cannot run there.
Status inbox_server(const Driver& driver, const ContextScope& scope, const KernelPlace& place,
                    InboxServer*& server);

}  // namespace accord::device::cuda
