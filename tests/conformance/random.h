// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The random numbers of a case. Everything a case does follows from (seed, case number, rank), so
// that one line reruns it. Knows no MPI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace accord::conformance {

// One step of splitmix64: a good mixer, and itself a generator.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <class... Rest>
std::uint64_t mix(std::uint64_t first, Rest... rest) {
  std::uint64_t hash = mix(first);
  ((hash = mix(hash ^ mix(static_cast<std::uint64_t>(rest)))), ...);
  return hash;
}

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return state_ = mix(state_); }

  // 0 <= result < bound; bound 0 gives 0.
  int below(int bound) {
    return bound <= 0 ? 0 : static_cast<int>(next() % static_cast<std::uint64_t>(bound));
  }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  template <class T, std::size_t N>
  const T& pick(const std::array<T, N>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(N)))];
  }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<std::size_t>(below(static_cast<int>(i)))]);
  }

  // A generator of its own for a part of the case that may draw a number of values which is not
  // reproducible (polling loops): the parent is advanced by exactly one step.
  Rng fork() { return Rng(mix(next(), 0x666f726b)); }

 private:
  std::uint64_t state_;
};

}  // namespace accord::conformance
