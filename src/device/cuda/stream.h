// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Streams for libraries that bring kernels of their own, and the default stream. Called by
// cuda/runtime.cpp.
#pragma once

#include <memory>

#include "device/cuda/copy.h"
#include "device/cuda/driver.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {

// Of the scope's context, which somebody holds for as long as the stream lives.
Status make_stream(const Driver& driver, const ContextScope& scope,
                   std::unique_ptr<LibraryStream>& stream);

// Of the context that this thread uses `memory` in. Not busy where a stream of that captures.
Status default_stream_busy(const Driver& driver, const PointerInfo& memory, bool& busy);

}  // namespace accord::device::cuda
