// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What all processes of a machine see alike. Called by the shim as MPI begins; thread-safe.
#pragma once

namespace accord::device {

// Whether some process of this machine may use an accelerator: also where the environment hides
// them from this one, as CUDA_VISIBLE_DEVICES does. Initialises nothing.
bool accelerator_on_machine();

// Whether this process may use an adapter that reads and writes memory by itself (InfiniBand, RoCE,
// EFA: whatever is opened by verbs). Without one a CPU copies each byte that leaves the machine.
bool rdma_adapter_on_machine() noexcept;

}  // namespace accord::device
