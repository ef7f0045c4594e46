// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the Level Zero runtime and its kernels agree on. Those are C++ for OpenCL, with the
// arithmetic of reduce_functions.h and pack.h, compiled to SPIR-V where clang and its translator
// are found (cmake/AccordSpirv.cmake). A kernel has one parameter, in memory that it reaches: with
// so many addresses as a reduction may have, one that is passed by value would be copied for every
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace accord::device::level_zero {

constexpr std::uint32_t kKernelThreads = 256;  // of a work-group

constexpr std::size_t kReduceVectorBytes = 16;

// The parameter of accord_reduce_<element>_<op>. Addresses follow it: those of the sources, then
// those of the targets. Elements [head, head + vectors of them) are read and written as vectors,
// the others one by one.
struct ReduceParameters {
  std::uint64_t count;  // of elements
  std::uint64_t head;   // elements before the first vector
  std::uint64_t vectors;
  std::uint32_t source_count;
  std::uint32_t target_count;
  std::uint64_t aligned;  // 1: every address suits its element; 0: any address
};

// That of accord_pack_<bytes of a word>_<narrow or wide> is PackArguments (pack.h). Where its
// `runs` are not null they follow it.

}  // namespace accord::device::level_zero
