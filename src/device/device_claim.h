// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One process of a user at a time: who may keep a kernel on a device that waits for others. A
// device serves one process after the other, so two such kernels would keep each other from running
// for milliseconds; results are right all the same. Claims of other users count for nothing: nobody
// can tell whether they use the device, and anybody could switch the fastest algorithms off for
// others by claiming all devices. Knows no vendor. Called by runtimes, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace accord::device {

// Claims the device of this number, which differs for devices that are different, until the process
// ends. unsupported where another process of this user has it; again, in the same process, is no
// error.
Status claim_device(std::uint64_t device);

// The socket in the abstract namespace that stands for a claim. Another user may hold a name of
// ours: then the next one of kClaimNames is tried.
inline constexpr unsigned kClaimNames = 8;
std::string claim_name(std::uint64_t device, unsigned attempt);

}  // namespace accord::device
