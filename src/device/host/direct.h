// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Direct work (device/direct_work.h) by the CPU: what the host runtime does in place of a kernel.
#pragma once

#include "device/direct_work.h"
#include "device/host/arena.h"

namespace accord::device {

Status do_direct_work(const HostArena& arena, const DirectWork& work);

}  // namespace accord::device
