// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges on Intel GPUs, by kernels launched for each (launched_inbox.h). Called by
// level_zero/runtime.cpp.
#pragma once

#include "device/inbox_server.h"
#include "device/level_zero/devices.h"

namespace accord::device::level_zero {

// The server of `device`, number `index` of the runtime: kept for good, made at the first call that
// finds all that it takes. unsupported where the device cannot run the kernels.
Status inbox_server(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                    InboxServer*& server);

}  // namespace accord::device::level_zero
