// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a kernel does to follow a layout, done by the CPU. Called by host/reach.cpp, and by the
// tests' fake driver.
#pragma once

#include "device/pack.h"

namespace accord::device {

// The CPU can touch all bytes of the copy. `word_bytes` is a power of two, 16 at most.
void pack_on_host(const PackArguments& arguments, std::size_t word_bytes, bool narrow);

}  // namespace accord::device
