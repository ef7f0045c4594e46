// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The arithmetic of reductions, the same for the CPU (reduce_on_host.cpp) and for kernels
// (cuda/kernels.cu), and the list of all pairs of element and operation that there is code for.
#pragma once

#include <cstdint>
#include <cstring>
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

// std::bit_cast, which kernels must not call.
template <class To, class From>
ACCORD_HOST_DEVICE inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// The bits of a floating-point number of 16 bits.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// `bits` without its lowest `count` (1 to 31) ones, rounded to the nearest, ties to even.
ACCORD_HOST_DEVICE constexpr std::uint32_t rounded_off(std::uint32_t bits, std::uint32_t count) {
  const std::uint32_t odd = (bits >> count) & 1;
  return (bits + (std::uint32_t{1} << (count - 1)) - 1 + odd) >> count;
}

ACCORD_HOST_DEVICE inline float to_float(BFloat16 value) {
  return bits_as<float>(std::uint32_t{value.bits} << 16);
}

ACCORD_HOST_DEVICE inline float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  // Subnormal: a number of units of 2^-24, and float32 holds them all.
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  // The exponents of float32 start 112 lower, and infinity and NaN have the highest of each.
  const std::uint32_t rebias = (magnitude >= 0x7c00 ? 224U : 112U) << 23;
  const std::uint32_t bits =
      magnitude < 0x400 ? bits_as<std::uint32_t>(small) : (magnitude << 13) + rebias;
  return bits_as<float>(sign | bits);
}

// To the nearest number of the format, ties to even; every NaN becomes the same one.
template <class Half>
ACCORD_HOST_DEVICE Half rounded(float value);

template <>
ACCORD_HOST_DEVICE inline BFloat16 rounded<BFloat16>(float value) {
  if (value != value) return {0x7fff};
  return {static_cast<std::uint16_t>(rounded_off(bits_as<std::uint32_t>(value), 16))};
}

template <>
ACCORD_HOST_DEVICE inline Float16 rounded<Float16>(float value) {
  const auto bits = bits_as<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  constexpr std::uint32_t kTooLarge = 0x47800000;  // 2^16; somewhat less is rounded to infinity
  constexpr std::uint32_t kNormal = 0x38800000;    // 2^-14
  if (magnitude > kInfinity) return {0x7fff};
  if (magnitude >= kTooLarge) return {static_cast<std::uint16_t>(sign | 0x7c00U)};
  if (magnitude >= kNormal) {
    return {static_cast<std::uint16_t>(sign | rounded_off(magnitude - (112U << 23), 13))};
  }
  // Subnormal: adding 0.5 leaves units of 2^-24 in the lowest bits, rounded by the addition itself.
  const float shifted = bits_as<float>(magnitude) + 0.5F;
  return {static_cast<std::uint16_t>(sign | (bits_as<std::uint32_t>(shifted) & 0xffffU))};
}

template <class V, class I>
struct Pair {
  V value;
  I index;
};

// The same without the gap that C leaves behind the index, in parts that keep it aligned to no more
// than what its size allows.
template <class V, class I>
struct PackedPair {
  using Part = std::conditional_t<sizeof(V) % sizeof(I) == 0, I, V>;
  Part parts[(sizeof(V) + sizeof(I)) / sizeof(Part)];
};

using FloatInt = Pair<float, std::int32_t>;
using IntInt = Pair<std::int32_t, std::int32_t>;
using FloatFloat = Pair<float, float>;
using DoubleDouble = Pair<double, double>;
using DoubleInt = PackedPair<double, std::int32_t>;
using LongInt = PackedPair<std::int64_t, std::int32_t>;
using ShortInt = PackedPair<std::int16_t, std::int32_t>;

template <class T>
inline constexpr bool is_pair = false;
template <class V, class I>
inline constexpr bool is_pair<Pair<V, I>> = true;
template <class V, class I>
inline constexpr bool is_pair<PackedPair<V, I>> = true;

template <class V, class I>
ACCORD_HOST_DEVICE inline Pair<V, I> unpacked(const Pair<V, I>& pair) {
  return pair;
}
template <class V, class I>
ACCORD_HOST_DEVICE inline Pair<V, I> unpacked(const PackedPair<V, I>& packed) {
  Pair<V, I> pair;
  std::memcpy(&pair.value, packed.parts, sizeof(V));
  std::memcpy(&pair.index, reinterpret_cast<const char*>(packed.parts) + sizeof(V), sizeof(I));
  return pair;
}

// Small integers are calculated with in a wider unsigned type: on their own they would be promoted
// to int, whose overflow is undefined.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T,
                                std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;

// For what the lists below name only. Complex products are the schoolbook ones: they say NaN
// where C's own may say infinity.
template <ReduceOp op, class T>
ACCORD_HOST_DEVICE inline T combine(T a, T b) {
  if constexpr (is_complex<T>) {
    if constexpr (op == ReduceOp::sum) return {a.re + b.re, a.im + b.im};
    if constexpr (op == ReduceOp::prod) {
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    }
  } else if constexpr (is_half<T>) {
    // Those that compare take one of the two as it is.
    const float here = to_float(a);
    const float there = to_float(b);
    if constexpr (op == ReduceOp::sum) return rounded<T>(here + there);
    if constexpr (op == ReduceOp::prod) return rounded<T>(here * there);
    if constexpr (op == ReduceOp::min) return there < here ? b : a;
    if constexpr (op == ReduceOp::max) return here < there ? b : a;
  } else if constexpr (is_pair<T>) {
    const auto here = unpacked(a);
    const auto there = unpacked(b);
    if (there.value == here.value) return there.index < here.index ? b : a;
    if constexpr (op == ReduceOp::minloc) return there.value < here.value ? b : a;
    if constexpr (op == ReduceOp::maxloc) return here.value < there.value ? b : a;
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

// X(element, type, op) for every pair of them that arithmetic_element can lead to.
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
#define ACCORD_REDUCTIONS_OF_PAIR(X, element, type) \
  X(element, type, minloc)                          \
  X(element, type, maxloc)

// Elements of 1, 2, 4, 8 or 16 bytes.
#define ACCORD_REDUCTIONS(X)                                   \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint8, std::uint8_t)        \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint16, std::uint16_t)      \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint32, std::uint32_t)      \
  ACCORD_REDUCTIONS_OF_UNSIGNED(X, uint64, std::uint64_t)      \
  ACCORD_REDUCTIONS_OF_ORDER(X, int8, std::int8_t)             \
  ACCORD_REDUCTIONS_OF_ORDER(X, int16, std::int16_t)           \
  ACCORD_REDUCTIONS_OF_ORDER(X, int32, std::int32_t)           \
  ACCORD_REDUCTIONS_OF_ORDER(X, int64, std::int64_t)           \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float16, Float16)              \
  ACCORD_REDUCTIONS_OF_FLOAT(X, bfloat16, BFloat16)            \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float32, float)                \
  ACCORD_REDUCTIONS_OF_FLOAT(X, float64, double)               \
  ACCORD_REDUCTIONS_OF_COMPLEX(X, complex64, Complex<float>)   \
  ACCORD_REDUCTIONS_OF_COMPLEX(X, complex128, Complex<double>) \
  ACCORD_REDUCTIONS_OF_PAIR(X, float32_int32, FloatInt)        \
  ACCORD_REDUCTIONS_OF_PAIR(X, int32_int32, IntInt)            \
  ACCORD_REDUCTIONS_OF_PAIR(X, float32_float32, FloatFloat)    \
  ACCORD_REDUCTIONS_OF_PAIR(X, float64_float64, DoubleDouble)

// Elements of 6 or 12 bytes: no whole number of them fits a vector.
#define ACCORD_ODD_REDUCTIONS(X)                         \
  ACCORD_REDUCTIONS_OF_PAIR(X, float64_int32, DoubleInt) \
  ACCORD_REDUCTIONS_OF_PAIR(X, int64_int32, LongInt)     \
  ACCORD_REDUCTIONS_OF_PAIR(X, int16_int32, ShortInt)
