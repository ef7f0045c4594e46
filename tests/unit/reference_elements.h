// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Elements of reductions that C++ has no type for, calculated with in the plainest way there is.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace accord::test {

// A floating-point number of 16 bits, so many of them behind the point.
template <int kFractionBits>
struct Half {
  static constexpr int kBias = (1 << (14 - kFractionBits)) - 1;
  static constexpr unsigned kInfinity = 0x7fff >> kFractionBits << kFractionBits;
  std::uint16_t bits;

  // What a magnitude stands for; of infinity the power of two that would come next.
  static double magnitude(unsigned bits) {
    const int exponent = static_cast<int>(bits >> kFractionBits);
    const int fraction = static_cast<int>(bits % (1U << kFractionBits));
    const int leading = exponent == 0 ? 0 : 1 << kFractionBits;
    return std::ldexp(leading + fraction, std::max(exponent, 1) - kBias - kFractionBits);
  }

  float value() const {
    const unsigned all = bits & 0x7fffU;
    double result = magnitude(all);
    if (all == kInfinity) result = std::numeric_limits<double>::infinity();
    if (all > kInfinity) result = std::numeric_limits<double>::quiet_NaN();
    return static_cast<float>((bits & 0x8000U) != 0 ? -result : result);
  }

  // Magnitudes rise with their bits: the nearest is one of two neighbours, the even one of a tie.
  static Half nearest(float value) {
    if (std::isnan(value)) return {0x7fff};
    const double wanted = std::fabs(static_cast<double>(value));
    unsigned low = 0;
    for (unsigned step = 0x4000; step != 0; step /= 2) {
      if (low + step <= kInfinity && magnitude(low + step) <= wanted) low += step;
    }
    if (low < kInfinity) {
      const double below = wanted - magnitude(low);
      const double above = magnitude(low + 1) - wanted;
      if (above < below || (above == below && low % 2 == 1)) ++low;
    }
    return {static_cast<std::uint16_t>(low | (std::signbit(value) ? 0x8000U : 0U))};
  }
};

template <class T>
inline constexpr bool is_half = false;
template <int kFractionBits>
inline constexpr bool is_half<Half<kFractionBits>> = true;

// A value and an index, without gaps.
#pragma pack(push, 1)
template <class V, class I>
struct ValueAndIndex {
  V value;
  I index;
};
#pragma pack(pop)

template <class T>
inline constexpr bool is_pair = false;
template <class V, class I>
inline constexpr bool is_pair<ValueAndIndex<V, I>> = true;

}  // namespace accord::test
