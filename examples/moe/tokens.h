// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What tokens are, which experts the gate sends them to, and what an expert makes of them. The
// same functions run in kernels and in the check. All numbers have so few bits that no sum or
// product of them is rounded.
#pragma once

#include <cstddef>

#include "../common/device.h"

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

namespace moe {

constexpr int kTopMax = 2;

// Spreads the bits of neighbours apart.
ON_BOTH inline unsigned mix(unsigned bits) {
  bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
  bits = (bits ^ (bits >> 15)) * 0x846ca68bU;
  return bits ^ (bits >> 16);
}

// The tokens of a rank in a step.
struct Tokens {
  unsigned seed;

  Tokens(int step, int rank)
      : seed(mix(static_cast<unsigned>(step) * 0x9e3779b9U + static_cast<unsigned>(rank) + 1U)) {}
  // Number `i` of a token, from 0 to 1023.
  ON_BOTH float number(int token, int i) const {
    const unsigned of_token = mix(seed + static_cast<unsigned>(token));
    return static_cast<float>(mix(of_token ^ (static_cast<unsigned>(i) * 0x85ebca6bU)) % 1024U);
  }
};

// Sends a token to `top` of the experts. `skew` percent of all tokens go to the `crowded` one; what
// else these ask for is its neighbour, so that other ranks may get nothing.
struct Gate {
  int experts;
  int top;
  int skew;
  int crowded;

  // `number(i)` is that of the token.
  template <class Number>
  ON_BOTH void choose(int hidden, const Number& number, int chosen[kTopMax]) const {
    constexpr int kLooksAt = 16;
    unsigned bits = 1;
    for (int i = 0; i < hidden && i < kLooksAt; ++i)
      bits = mix(bits + static_cast<unsigned>(number(i)));
    const auto all = static_cast<unsigned>(experts);
    const bool is_crowded = mix(bits + 1U) % 100U < static_cast<unsigned>(skew);
    const unsigned first = is_crowded ? static_cast<unsigned>(crowded) : mix(bits + 2U) % all;
    chosen[0] = static_cast<int>(first);
    if (top == 1) return;
    const unsigned step = is_crowded ? 1U : 1U + mix(bits + 3U) % (all - 1U);
    chosen[1] = static_cast<int>((first + step) % all);
  }
};

ON_BOTH inline float apply_expert(int expert, float number) {
  const int power = expert % 8;  // of two, times eight
  return number * static_cast<float>(1 << power) / 8.0f + static_cast<float>(expert);
}

// How much of the result is of choice `i`.
ON_BOTH inline float weight(int top, int i) {
  if (top == 1) return 1.0f;
  return i == 0 ? 0.75f : 0.25f;
}

}  // namespace moe
