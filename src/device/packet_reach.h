// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whose inboxes may be written in packets (inbox.h): a device says which ones see 16 bytes that it
// stores at once, at once. Among ranks it takes that each says so of each. Plain bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace accord::device {

struct PacketReach {
  std::uint64_t own = 0;                  // differs for devices that are different; 0: no packets
  std::array<std::uint64_t, 16> peers{};  // these, and itself

  constexpr bool has(std::uint64_t device) const noexcept {
    return device != 0 && (device == own || std::ranges::find(peers, device) != peers.end());
  }
};

constexpr bool all_take_packets(std::span<const PacketReach> of_all) noexcept {
  for (const PacketReach& from : of_all)
    for (const PacketReach& to : of_all)
      if (from.own == 0 || !from.has(to.own)) return false;
  return true;
}

}  // namespace accord::device
