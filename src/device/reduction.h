// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a reduction on a device is: one buffer made of several, element by element, in a fixed
// order, so that every runtime gives the same bits. Knows no MPI: its operations and datatypes are
// mapped to these above. Included by the kernels too, hence no more than the standard library here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Functions that kernels call too.
#ifdef __CUDACC__
#define ACCORD_HOST_DEVICE __host__ __device__
#else
#define ACCORD_HOST_DEVICE
#endif

namespace accord {
class Status;
}

namespace accord::device {

enum class ReduceOp : std::uint32_t {
  none = 0,
  sum,
  prod,
  min,
  max,
  land,
  lor,
  lxor,
  band,
  bor,
  bxor,
  minloc,
  maxloc,
};

enum class Element : std::uint32_t {
  none = 0,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,   // IEEE binary16
  bfloat16,  // the upper half of a float32
  float32,
  float64,
  complex64,   // two float32
  complex128,  // two float64
  // A value and an index, without gaps: the operations are minloc and maxloc.
  float32_int32,
  float64_int32,
  int64_int32,
  int32_int32,
  int16_int32,
  float32_float32,
  float64_float64,
};

constexpr std::size_t element_bytes(Element element) {
  switch (element) {
    case Element::none:
      return 0;
    case Element::int8:
    case Element::uint8:
      return 1;
    case Element::int16:
    case Element::uint16:
    case Element::float16:
    case Element::bfloat16:
      return 2;
    case Element::int32:
    case Element::uint32:
    case Element::float32:
      return 4;
    case Element::int16_int32:
      return 6;
    case Element::int64:
    case Element::uint64:
    case Element::float64:
    case Element::complex64:
    case Element::float32_int32:
    case Element::int32_int32:
    case Element::float32_float32:
      return 8;
    case Element::float64_int32:
    case Element::int64_int32:
      return 12;
    case Element::complex128:
    case Element::float64_float64:
      return 16;
  }
  return 0;
}

// What its address has to be a multiple of, where it is not read byte by byte.
constexpr std::size_t element_alignment(Element element) {
  switch (element) {
    case Element::int16_int32:
      return 2;
    case Element::complex64:
    case Element::float32_int32:
    case Element::int32_int32:
    case Element::float32_float32:
    case Element::float64_int32:
    case Element::int64_int32:
      return 4;
    case Element::complex128:
    case Element::float64_float64:
      return 8;
    default:
      return element_bytes(element);
  }
}

// dst[i] = ((sources[0][i] op sources[1][i]) op sources[2][i]) ...; one source is copied as it is.
// The result goes to each of `copies` too. `dst` may be exactly one of the sources, and so may a
// copy; else nothing overlaps. Any alignment; all addresses alike modulo 16 bytes is the fast case.
// Integers wrap, logical operations give 0 or 1, min and max keep the earlier one where neither is
// less (as with NaN), minloc and maxloc the lower index where the values are equal. The 16-bit
// formats are calculated with as float32, and each step is rounded to the nearest, ties to even.
struct Reduction {
  void* dst;
  std::span<const void* const> sources;
  std::size_t count;  // of elements
  ReduceOp op;
  Element element;
  std::span<void* const> copies = {};
  // Memory of the device with which kernels have reached all of the above before: what asks the
  // driver about each of them then asks about this alone. Null: it is not known.
  const void* home = nullptr;
};

// Whether the operation is defined for the element: logical and bitwise ones for integers only,
// complex numbers have no order, and pairs nothing else.
constexpr bool is_defined(ReduceOp op, Element element) {
  if (element_bytes(element) == 0 || op == ReduceOp::none || op > ReduceOp::maxloc) return false;
  if (element >= Element::float32_int32) return op >= ReduceOp::minloc;
  if (element >= Element::complex64) return op <= ReduceOp::prod;
  return op <= (element >= Element::float16 ? ReduceOp::max : ReduceOp::bxor);
}

// The element to calculate with: signed integers of two's complement give the same bits as unsigned
// ones, which wrap without undefined behaviour, in all but comparisons. Halves the kernels.
constexpr Element arithmetic_element(ReduceOp op, Element element) {
  const bool compares = op == ReduceOp::min || op == ReduceOp::max;
  switch (element) {
    case Element::int8:
      return compares ? element : Element::uint8;
    case Element::int16:
      return compares ? element : Element::uint16;
    case Element::int32:
      return compares ? element : Element::uint32;
    case Element::int64:
      return compares ? element : Element::uint64;
    default:
      return element;
  }
}

// unsupported where the operation is not defined, invalid_argument where it has no source or its
// bytes cannot be counted; what every runtime checks first.
Status check_reduction(const Reduction& reduction);

}  // namespace accord::device
