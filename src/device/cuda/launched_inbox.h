// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges by kernels that are launched for each (launched_inbox.h), for drivers that come
// with an image of these: HIP. Memory of AMD's devices that other devices write to is not promised
// to be seen by a kernel that runs meanwhile, but by the next one. Called by cuda/runtime.cpp.
#pragma once

#include "device/cuda/copy.h"
#include "device/cuda/driver.h"
#include "device/inbox_server.h"

namespace accord::device::cuda {

// The server of the entered context, which is of `device`. unsupported where the kernels cannot run
// there.
Status launched_inbox_server(const Driver& driver, const ContextScope& scope,
                             DeviceRuntime& runtime, Device device, InboxServer*& server);

}  // namespace accord::device::cuda
