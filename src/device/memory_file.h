// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory that processes share by a file descriptor. Its size is sealed: whoever has the descriptor,
// or reaches it below /proc as the same user can, could otherwise truncate it, and the next access
// of the others would end them with SIGBUS. Knows no vendor and no MPI.
#pragma once

#include <cstddef>

namespace accord::device {

// Zeros. The caller closes the descriptor; -1: errno says why.
int make_memory_file(const char* name, std::size_t size_bytes) noexcept;

// Whether a descriptor that came from another process is of memory which nobody can truncate.
bool is_memory_file(int descriptor) noexcept;

}  // namespace accord::device
