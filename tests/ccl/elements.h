// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The elements and operations of the stand-ins for collective libraries, numbered as NCCL numbers
// its own, and the reduction of one contribution a rank: in rank order, 16-bit floating-point
// numbers in float32, rounded once.
#pragma once

#include <cstddef>
#include <span>

namespace accord::fake {

enum class Element {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};
inline constexpr int kElements = 10;

enum class Reduction { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };
inline constexpr int kReductions = 5;

std::size_t size_of(Element element);

// parts: one after the other, each as large as the result.
void reduce(Element element, Reduction reduction, std::span<const std::byte> parts,
            std::span<std::byte> result);

}  // namespace accord::fake
