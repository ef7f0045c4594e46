// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The arithmetic of reductions, the same for the CPU (host_reduce.cpp) and for kernels
// (cuda_kernels.cu), and the list of all pairs of element and operation that there is code for.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/reduction.h"

namespace accord::device {

template <class Part>
struct Complex {
  Part re;
  Part im;
};

template <class T>
inline constexpr bool is_complex = false;
template <class Part>
inline constexpr bool is_complex<Complex<Part>> = true;

// Small integers are calculated with in a wider unsigned type: on their own they would be promoted
// to int, whose overflow is undefined.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T,
                                std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;

// For the pairs of ACCORD_REDUCTIONS only. Complex products are the schoolbook ones: they say NaN
// where C's own may say infinity.
template <ReduceOp op, class T>
ACCORD_HOST_DEVICE inline T combine(T a, T b) {
  if constexpr (is_complex<T>) {
    if constexpr (op == ReduceOp::sum) return {a.re + b.re, a.im + b.im};
    if constexpr (op == ReduceOp::prod) {
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    }
  } else {
    if constexpr (op == ReduceOp::sum) return static_cast<T>(Wide<T>(a) + Wide<T>(b));
    if constexpr (op == ReduceOp::prod) return static_cast<T>(Wide<T>(a) * Wide<T>(b));
    if constexpr (op == ReduceOp::min) return b < a ? b : a;
    if constexpr (op == ReduceOp::max) return a < b ? b : a;
    if constexpr (op == ReduceOp::land) return static_cast<T>(a != 0 && b != 0);
    if constexpr (op == ReduceOp::lor) return static_cast<T>(a != 0 || b != 0);
    if constexpr (op == ReduceOp::lxor) return static_cast<T>((a != 0) != (b != 0));
    if constexpr (op == ReduceOp::band) return static_cast<T>(a & b);
    if constexpr (op == ReduceOp::bor) return static_cast<T>(a | b);
    if constexpr (op == ReduceOp::bxor) return static_cast<T>(a ^ b);
  }
}

}  // namespace accord::device

// X(element, type, op) for every pair that arithmetic_element can lead to.
#define ACCORD_REDUCTIONS_OF_COMPLEX(X, element, type) \
  X(element, type, sum)                                \
  X(element, type, prod)
#define ACCORD_REDUCTIONS_OF_ORDER(X, element, type) \
  X(element, type, min)                              \
  X(element, type, max)
#define ACCORD_REDUCTIONS_OF_FLOAT(X, element, type) \
  ACCORD_REDUCTIONS_OF_COMPLEX(X, element, type)     \
  ACCORD_REDUCTIONS_OF_ORDER(X, element, type)
#define ACCORD_REDUCTIONS_OF_UNSIGNED(X, element, type) \
  ACCORD_REDUCTIONS_OF_FLOAT(X, element, type)          \
  X(element, type, land)                                \
  X(element, type, lor)                                 \
  X(element, type, lxor)                                \
  X(element, type, band)                                \
  X(element, type, bor)                                 \
  X(element, type, bxor)

#define ACCORD_REDUCTIONS(X)                                 \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint8, std::uint8_t)      \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint16, std::uint16_t)    \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint32, std::uint32_t)    \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint64, std::uint64_t)    \
  ACCORD_REDUCTIONS_OF_ORDER(X, int8, std::int8_t)           \
  ACCORD_REDUCTIONS_OF_ORDER(X, int16, std::int16_t)         \
  ACCORD_REDUCTIONS_OF_ORDER(X, int32, std::int32_t)         \
  ACCORD_REDUCTIONS_OF_ORDER(X, int64, std::int64_t)         \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float32, float)              \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float64, double)             \
  ACCORD_REDUCTIONS_OF_COMPLEX(X, complex64, Complex<float>) \
  ACCORD_REDUCTIONS_OF_COMPLEX(X, complex128, Complex<double>)
