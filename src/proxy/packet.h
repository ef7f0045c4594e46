// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ranks and the proxy of their node tell each other: packets over a Unix socket of the kind
// that keeps them whole, with a descriptor where memory is shared. The kernel says which user the
// other end is of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "node/descriptor.h"

namespace accord::proxy {

// What the words, the body and the descriptor of a packet are, follows from its kind.
enum class Kind : std::uint32_t {
  hello = 1,  // rank: words[0] kVersion
  welcome,    // proxy: words[0] its process, [1] the cores it may use, [2] the rank's number there;
              // body: how its worker is reached, nothing where it has none
  take_pool,  // rank: words[0] the bytes that it wants
  pool,       // proxy: words[0] the bytes, [1] their address in its process; body: their remote
              // key; the memory's descriptor
  carry,      // rank: ErrandWords; body: the handle of its allocation, the name of the device, how
              // the worker is reached where it is to land and whose it is; the descriptor that the
              // handle needs, if any
  land,       // rank: the same, with nowhere to go: it lands here, at landing_number()
  drop,       // rank: words[0] the number of one of these that is not wanted any more
  ended,      // proxy, unasked: words[0] that number, [1] a StatusCode, [2] whether it lacks a core
              // (core_watch.h); body: what went wrong
  refused,    // proxy: words[0] a StatusCode; body: why
};

// A rank and a proxy of different installations do not meet in the middle.
constexpr std::uint64_t kVersion = 3;

struct Packet {
  static constexpr std::size_t kWords = 12;
  static constexpr std::size_t kBodyBytesMax = 8192;

  Kind kind{};
  std::array<std::uint64_t, kWords> words{};
  std::vector<std::byte> body;
  node::Descriptor descriptor;
};

// A message for the proxy: which bytes of an allocation of this rank, and where they go. `number`
// is the rank's name for it.
struct ErrandWords {
  std::uint64_t number = 0;
  std::uint64_t base = 0;  // of the allocation, in the rank
  std::uint64_t buffer_id = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t landing = 0;
  std::uint64_t handle_bytes = 0;
  std::uint64_t device_bytes = 0;
  std::uint64_t worker_bytes = 0;
  std::uint64_t name_bytes = 0;
};
ErrandWords errand_words(const Packet& packet);
void put_words(const ErrandWords& words, Packet& packet);

// How carriers know what lands at the proxy, for the rank of that number there.
constexpr std::uint64_t landing_number(std::uint64_t guest, std::uint64_t number) {
  return guest << 32 | (number & 0xffffffff);
}

// Neither waits. `sent` says no where the other end has to take what it has first.
Status send_packet(int socket, const Packet& packet, bool& sent);
// `came` says no where there is none yet. An error: there will be none any more.
Status receive_packet(int socket, Packet& packet, bool& came);

bool is_of_this_user(int socket) noexcept;

}  // namespace accord::proxy
