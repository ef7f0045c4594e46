// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Long pairs that go by a transport: what their messages name, and where it lies.
#include <cstring>

#include "coll/pairs/far_pairs.h"

namespace accord::coll {

bool FarPairs::is_to_offer(const Pair& pair) const {
  return transport_ != nullptr && !pair.is_short && !is_near(pair.peer) &&
         pair.size_bytes >= args_.ways.offer_bytes &&
         pair.size_bytes < args_.ways.offer_bytes_end && transport_->reaches(pair.peer);
}

// Nowhere: it has to lie in a parcel, as what comes in place must until its place is free.
net::Memory FarPairs::run_of(const core::CallEnd& end, const Piece& piece) const {
  const Pair& pair = *piece.pair;
  if (args_.in_place || !pair.is_one_block() || end.shadowed || pair.is_refused) return {};
  const device::PointerInfo where = end.runtime != nullptr ? end.memory : device::PointerInfo();
  std::byte* const start = core::run_of(pair.block, end.user, pair.size_bytes);
  if (start == nullptr || !transport_->takes(where)) return {};
  return {.start = start + piece.first_bytes, .size_bytes = piece.length_bytes, .where = where};
}

// Its piece is the chunk's only one.
void FarPairs::find_place(const core::CallEnd& end, Chunk& chunk, Piece& piece) const {
  piece.is_run = run_of(end, piece).start != nullptr;
  chunk.note.size = piece.pair->size_bytes | kOffered;
  auto* const note = reinterpret_cast<std::byte*>(&chunk.note);
  piece.message = note + sizeof chunk.note.size - piece.prefix_bytes();
}

Status FarPairs::post_offer(Chunk& chunk) {
  Piece& piece = chunk.pieces.front();
  const net::Memory from =
      piece.is_run ? run_of(args_.in, piece) : net::Memory{piece.bytes, piece.length_bytes, {}};
  piece.end = transport_->offer(piece.pair->peer, from, chunk.note.name);
  ACCORD_TRY(wire_.send(piece.pair->peer, tags_.pieces, piece.message,
                        piece.prefix_bytes() + sizeof chunk.note.name, piece.request));
  piece.is_posted = true;
  offers_.fetch_add(1, std::memory_order_relaxed);
  chunk.state = Chunk::State::in_wire;
  return {};
}

// 0: none.
Transport::Name FarPairs::name_in(const Piece& piece, std::size_t received_bytes) const noexcept {
  Transport::Name name = 0;
  if (!piece.pair->is_offered || transport_ == nullptr ||
      received_bytes != piece.prefix_bytes() + sizeof name)
    return 0;
  std::memcpy(&name, piece.message + piece.prefix_bytes(), sizeof name);
  return name;
}

// The first one's receiver had no room for it before it knew of it.
Status FarPairs::fetch_offer(Chunk& chunk, Piece& piece, std::size_t received_bytes) {
  const int peer = piece.pair->peer;
  const Transport::Name name = name_in(piece, received_bytes);
  if (name == 0) return {StatusCode::device_error, "nodes: a rank of another node offers nothing"};
  if (piece.pair->is_refused || chunk.pieces.size() != 1) {
    transport_->dismiss(peer, name);
    return {};
  }
  net::Memory to = run_of(args_.out, piece);
  piece.is_run = to.start != nullptr;
  if (!piece.is_run && piece.first_bytes == 0) {
    device::StagingBuffer parcel;
    const Status taken = device::staging_pool().acquire(&runtime_, piece.length_bytes, parcel);
    if (!taken.ok()) {
      transport_->dismiss(peer, name);
      return taken;
    }
    chunk.parcel = std::move(parcel);
    piece.bytes = static_cast<std::byte*>(chunk.parcel.data());
  }
  if (!piece.is_run) to = {piece.bytes, piece.length_bytes, {}};
  piece.end = transport_->fetch(peer, name, to);
  return {};
}

// Of one that is not offered nothing is left once its message is there.
Status FarPairs::poll_end(Piece& piece, bool& moved) {
  Status status;
  piece.has_ended = true;
  if (piece.end) status = piece.end->poll(piece.has_ended);
  if (piece.has_ended) piece.end.reset();
  moved = moved || piece.has_ended;
  return status;
}

}  // namespace accord::coll
