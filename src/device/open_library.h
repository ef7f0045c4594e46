// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// dlopen for libraries of vendors that the program may not use itself: one that was cut short, as a
// full disk leaves it, ends a process that loads it. Called by the drivers. Thread-safe.
#pragma once

namespace accord::device {

// As dlopen(name, flags), but null where the file that the linker's search path leads to is shorter
// than its own headers say. What only the linker's cache knows is not looked at.
void* open_library(const char* name, int flags) noexcept;

}  // namespace accord::device
