// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What all processes of a machine see alike. Called by the shim as MPI begins; thread-safe.
#pragma once

namespace accord::device {

// Whether some process of this machine may use an accelerator: also where the environment hides
// them from this one, as CUDA_VISIBLE_DEVICES does. Initialises nothing.
bool accelerator_on_machine();

}  // namespace accord::device
