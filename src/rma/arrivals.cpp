// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/arrivals.h"

#include <cstring>

namespace accord::rma {

using message::Header;
using message::Kind;
using message::Packet;

namespace {

Status unlike(const char* what) {
  return {StatusCode::mismatch, std::string("a message of the window with ") + what};
}

// Runs in the order of an operation, whose bytes together are few enough.
Status add_up(std::span<const std::byte> runs, std::uint64_t& total_bytes) {
  total_bytes = 0;
  for (; !runs.empty(); runs = runs.subspan(sizeof(Piece))) {
    Piece piece;
    std::memcpy(&piece, runs.data(), sizeof piece);
    if (piece.length_bytes > kQuestionBytesMax - total_bytes) return unlike("too long a run");
    total_bytes += piece.length_bytes;
  }
  return {};
}

// One run, of which nothing is in the message.
Status check_transported(const Header& header, std::span<const std::byte> body) {
  const bool names_offer = header.offer != 0;
  const bool is_right = (header.kind == Kind::put || header.kind == Kind::get) &&
                        names_offer == (header.kind == Kind::put) && header.pieces == 1 &&
                        body.size() == sizeof(Piece);
  return is_right ? Status() : unlike("contents that are not what goes by a transport");
}

bool has_elements(const Header& header, std::uint64_t total_bytes) {
  const std::uint32_t element_bytes = header.update.element_bytes;
  return element_bytes != 0 && total_bytes % element_bytes == 0;
}

}  // namespace

Status check_packet(const Packet& packet, std::size_t received_bytes, int ranks) {
  const Header& header = packet.header;
  if (received_bytes < sizeof header) return unlike("half a header");
  if (header.from < 0 || header.from >= ranks) return unlike("a sender that is no rank of it");
  if (received_bytes != packet.size_bytes()) return unlike("another length than it says");
  if (header.pieces > header.body_bytes / sizeof(Piece)) return unlike("more runs than bytes");
  if (header.body_bytes - header.pieces * sizeof(Piece) > kQuestionBytesMax)
    return unlike("too many bytes");
  if (header.pieces > kRunsMax) return unlike("too many runs");
  return {};
}

Status check_question(const Header& header, std::span<const std::byte> body) {
  if (header.transport != Transports::kNone) return check_transported(header, body);
  const std::size_t runs_bytes = header.pieces * sizeof(Piece);
  const std::uint64_t data_bytes = body.size() - runs_bytes;
  std::uint64_t total_bytes = 0;
  ACCORD_TRY(add_up(body.first(runs_bytes), total_bytes));
  bool is_right = false;
  switch (header.kind) {
    case Kind::put:
      is_right = data_bytes == total_bytes;
      break;
    case Kind::get:
      is_right = data_bytes == 0;
      break;
    case Kind::update:
    case Kind::fetch:
      is_right = has_elements(header, total_bytes) &&
                 data_bytes == (header.update.op == Update::kNoOp ? 0 : total_bytes);
      break;
    case Kind::compare:
      is_right = header.pieces == 1 && total_bytes == header.update.element_bytes &&
                 total_bytes != 0 && total_bytes <= kElementBytesMax &&
                 data_bytes == 2 * total_bytes;
      break;
    case Kind::lock:
    case Kind::unlock:
      is_right =
          body.empty() && (header.lock == LockKind::shared || header.lock == LockKind::exclusive);
      break;
    default:
      break;
  }
  return is_right ? Status() : unlike("contents that are not what it asks for");
}

}  // namespace accord::rma
