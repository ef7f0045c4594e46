// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels of blocks (../blocks.h) on the streams of an application.
#pragma once

#include "../blocks.h"
#include "device.h"

namespace app {

// Begins body(block) for `blocks` blocks, each thread of a block by itself.
template <class Body>
void launch_on(Stream& stream, int blocks, const Body& body) {
  if (blocks == 0) return;
#if ACCORD_PARTITIONED_GPU
  ::run<<<static_cast<unsigned>(blocks), ::kThreads, 0, stream.get()>>>(body);
  check(cudaGetLastError(), "a kernel");
#else
  static_cast<void>(stream);
  ::launch(blocks, body);
#endif
}

}  // namespace app
