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
  welcome,    // proxy: words[0] its process, [1] the cores it may use; body: how its worker is
              // reached, nothing where it has none
  take_pool,  // rank: words[0] the bytes that it wants
  pool,       // proxy: words[0] the bytes, [1] their address in its process; body: their remote
              // key; the memory's descriptor
  refused,    // proxy: words[0] a StatusCode; body: why
};

// A rank and a proxy of different installations do not meet in the middle.
constexpr std::uint64_t kVersion = 1;

struct Packet {
  static constexpr std::size_t kWords = 8;
  static constexpr std::size_t kBodyBytesMax = 8192;

  Kind kind{};
  std::array<std::uint64_t, kWords> words{};
  std::vector<std::byte> body;
  node::Descriptor descriptor;
};

// Neither waits. `sent` says no where the other end has to take what it has first.
Status send_packet(int socket, const Packet& packet, bool& sent);
// `came` says no where there is none yet. An error: there will be none any more.
Status receive_packet(int socket, Packet& packet, bool& came);

bool is_of_this_user(int socket) noexcept;

}  // namespace accord::proxy
