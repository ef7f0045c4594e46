// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Counts all memory of the program as it is taken. A file of its own: where the compiler saw into
// these functions it would warn of what malloc gives and delete takes.
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "bench/scale.h"

namespace {
std::size_t in_use = 0;  // there is one thread
}

std::size_t accord::bench::bytes_in_use() noexcept { return in_use; }

void* operator new(std::size_t size_bytes) {
  void* const memory = std::malloc(size_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  in_use += ::malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  in_use -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
