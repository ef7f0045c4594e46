// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The resident kernel of inbox exchanges over the fake driver: a thread for each launch plays all
// its blocks, by the protocol of cuda/inbox_kernel.h. It dies where the kernel would fault, of
// memory it cannot address. Tests may hold the device's time (fake_cuda_control.h).
#pragma once

#include <mutex>

#include "device/cuda/inbox_kernel.h"
#include "fake_cuda_state.h"

namespace accord::device::cuda {

// Which of the kernels it is.
enum class FakeResident { inbox, direct };

// Runs once all earlier launches on the stream have left. Called with state.mutex held.
Result launch_inbox(Stream stream, unsigned blocks, InboxLaunch launch, FakeResident kind);

// Until no such kernel is on the stream, or on any stream of the context. They let go of the mutex.
void await_residents(std::unique_lock<std::mutex>& lock, const StreamHandle& stream);
void await_residents(std::unique_lock<std::mutex>& lock, const ContextHandle& context);

}  // namespace accord::device::cuda
