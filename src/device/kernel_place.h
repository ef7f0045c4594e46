// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where the kernels of a process run, so that two processes can tell whether one's may wait for the
// other's. A device that two processes share serves one after the other, unless both are clients of
// one server that runs their kernels side by side (NVIDIA's Multi-Process Service). Plain bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

// Whether those of any two do.
constexpr bool take_turns(std::span<const KernelPlace> places) noexcept {
  for (std::size_t one = 0; one < places.size(); ++one)
    for (const KernelPlace& other : places.subspan(one + 1))
      if (takes_turns(places[one], other)) return true;
  return false;
}

constexpr bool take_long_turns(std::span<const KernelPlace> places) noexcept {
  for (std::size_t one = 0; one < places.size(); ++one)
    for (const KernelPlace& other : places.subspan(one + 1))
      if (takes_long_turns(places[one], other)) return true;
  return false;
}

}  // namespace accord::device
