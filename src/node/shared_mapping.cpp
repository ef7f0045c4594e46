// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/shared_mapping.h"

#include <sys/mman.h>

namespace accord::node {

void* map_shared(int descriptor, std::size_t size_bytes) noexcept {
  void* const memory =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_shared(void* memory, std::size_t size_bytes) noexcept { ::munmap(memory, size_bytes); }

}  // namespace accord::node
