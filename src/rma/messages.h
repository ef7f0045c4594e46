// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the ranks of a window send each other where an origin does not reach the target's memory
// itself: a header, and what is long after it as a second message. Plain bytes. What goes by a
// transport is in neither: the question of a put names what its origin offers, and the reply to a
// get names what the target offers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rma/target.h"
#include "rma/transports.h"

namespace accord::rma::message {

// life: give a sign of life; alive: this is one.
enum class Kind : std::uint32_t {
  put,
  get,
  update,
  fetch,
  compare,
  lock,
  unlock,
  reply,
  life,
  alive
};

struct Header {
  Kind kind = Kind::reply;
  std::int32_t from = -1;
  std::uint64_t number = 0;      // of the question, which its reply repeats
  std::uint64_t body_bytes = 0;  // pieces, then data
  std::uint64_t pieces = 0;
  Update update;
  LockKind lock = LockKind::shared;
  std::int32_t transport = Transports::kNone;  // of a put or get
  net::Transport::Name offer = 0;              // of what goes by it; 0: there is none
  std::uint32_t code = 0;                      // a StatusCode, of replies
  char text[108] = "";
};

// A header and a body that is short enough to follow it at once.
struct Packet {
  static constexpr std::size_t kShortBytes = 1024;
  Header header;
  std::byte body[kShortBytes];

  std::size_t size_bytes() const noexcept {
    return sizeof header + (header.body_bytes <= kShortBytes ? header.body_bytes : 0);
  }
};

// Tags of the wire.
inline constexpr int kPacketTag = 0;
inline constexpr int kBodyTag = 1;

}  // namespace accord::rma::message
