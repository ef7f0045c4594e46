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

// Devices of compute capability 9.0 or later (tests/mpi/torn_packets_gpu.cu): this one, and those
// that NVLink links to it, which unlike PCIe has atomics between devices. A process sees only the
// devices that it may use.
PacketReach reach_of_packets(const Driver& driver, Device device);

// The server of the entered context. unsupported where the kernel cannot run there.
Status inbox_server(const Driver& driver, const ContextScope& scope, const KernelPlace& place,
                    InboxServer*& server);

}  // namespace accord::device::cuda
