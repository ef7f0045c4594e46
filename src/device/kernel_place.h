// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the kernels of a process run, so that two processes can tell whether one's may wait for the
// other's. A device that two processes share serves one after the other, unless both are clients of
// one server that runs their kernels side by side (NVIDIA's Multi-Process Service). Plain bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <unordered_map>

namespace accord::device {

struct KernelPlace {
  std::uint64_t device = 0;  // differs for devices that are different; 0: nobody waits there
  std::uint64_t server = 0;  // differs for servers that are different; 0: none
  // What a turn takes where that is long (an H100: 150); 0: it is not, as far as anybody knows.
  std::uint64_t turn_us = 0;
};

// Whether kernels of these two take turns, so that one that waits keeps the other from running.
constexpr bool takes_turns(const KernelPlace& one, const KernelPlace& other) noexcept {
  return one.device != 0 && one.device == other.device &&
         (one.server == 0 || one.server != other.server);
}

// The same, where a turn is long.
constexpr bool takes_long_turns(const KernelPlace& one, const KernelPlace& other) noexcept {
  return one.turn_us != 0 && takes_turns(one, other);
}

// Whether those of any two do: of any range, each of which is looked at once. Those on one device
// that do not take turns with the first one there do not with each other.
template <std::ranges::input_range Places>
bool take_turns(const Places& places) {
  std::unordered_map<std::uint64_t, KernelPlace> firsts;
  for (const KernelPlace& place : places) {
    if (place.device == 0) continue;
    const auto [first, is_new] = firsts.try_emplace(place.device, place);
    if (!is_new && takes_turns(first->second, place)) return true;
  }
  return false;
}

// The same, where a turn is long.
template <std::ranges::input_range Places>
bool take_long_turns(const Places& places) {
  std::unordered_map<std::uint64_t, KernelPlace> firsts;  // of those whose turns are long
  for (const KernelPlace& place : places) {
    if (place.device == 0) continue;
    const auto first = firsts.find(place.device);
    if (first != firsts.end() && takes_turns(first->second, place)) return true;
    if (first == firsts.end() && place.turn_us != 0) firsts.emplace(place.device, place);
  }
  return false;
}

}  // namespace accord::device
