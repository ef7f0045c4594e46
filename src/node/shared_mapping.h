// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Files of shared memory in the address space of this process. A function of its own, so that a
// test with several ranks in one process can give all of them one and the same mapping: else a
// thread sanitizer would not see that they share memory.
#pragma once

#include <cstddef>

namespace accord::node {

// The whole file, to read and write; null, and errno says why.
void* map_shared(int descriptor, std::size_t size_bytes) noexcept;
void unmap_shared(void* memory, std::size_t size_bytes) noexcept;

}  // namespace accord::node
