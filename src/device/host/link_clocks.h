// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Until when the links of pretended devices are taken, shared by all processes of this user that
// see the same /dev/shm: ranks and the proxy of a node use the same links. Called by
// cost_model.cpp.
#pragma once

#include <cstdint>

namespace accord::device {

// In nanoseconds of CLOCK_MONOTONIC; of this process alone where nothing can be shared. Atomic.
std::int64_t& link_clock(int device, unsigned link);

}  // namespace accord::device
