// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NVIDIA's Multi-Process Service: whether this process is a client of it, and of which server.
#pragma once

#include <cstdint>

#include "device/cuda/driver.h"

namespace accord::device::cuda {

// Equal for clients of one server, 0 where contexts on the device are not shared through one. A
// server is told by the pipe of its control daemon: CUDA_MPS_PIPE_DIRECTORY, as the CUDA MPS guide
// has it. Clients of one daemon that belong to several users have servers of their own.
std::uint64_t mps_server(const Driver& driver, Device device);

}  // namespace accord::device::cuda
