// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Streams of a device whose memory the CPU may not touch: those of the stand-ins for HIP and
// Synapse (tests/hip, tests/synapse), where the process has loaded one.
#pragma once

#include <functional>

namespace accord::fake {

// Whether there are such streams.
bool has_streams();
// Has the work done on the stream, after what is on it; or captured, to be done again and again.
// It goes once it is done, or with what was captured. False: the stream does not take it.
bool enqueue(void* stream, std::function<void()> work);
// Where the bytes of device memory are; of other memory, the pointer itself.
void* bytes_of(const void* pointer);

}  // namespace accord::fake
