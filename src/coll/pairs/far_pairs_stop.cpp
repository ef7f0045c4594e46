// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What is left to do for the others after an error.
#include <algorithm>
#include <utility>

#include "coll/pairs/far_pairs.h"

namespace accord::coll {

void FarPairs::stop(bool& done) {
  (void)find_pairs();
  const bool bundles_ended = drain_bundles();
  drain_sends();
  done = drain_receives() && sending_.empty() && next(true) == nullptr && bundles_ended;
}

// The others may still need what this rank carries.
bool FarPairs::drain_bundles() {
  if (!bundles_) return true;
  bundles_->give_up();
  bool moved = false;
  (void)advance_bundles(moved);
  for (std::vector<Pair>* pairs : {&outgoing_, &incoming_})
    for (Pair& pair : *pairs)
      if (pair.is_bundled) pair.begun_bytes = pair.size_bytes;
  return bundles_->is_done();
}

// Pieces whose messages have not begun: they are begun anew.
void FarPairs::take_back(Chunk& chunk) {
  std::erase_if(chunk.pieces, [this](const Piece& piece) {
    if (piece.is_posted) return false;
    if (piece.is_bundled) return true;
    piece.pair->begun_bytes = std::min(piece.pair->begun_bytes, piece.first_bytes);
    begin_again(*piece.pair);
    return true;
  });
}

// What has failed has ended.
bool FarPairs::drain(Chunk& chunk, bool receives) {
  const core::CallEnd& end = receives ? args_.out : args_.in;
  bool ended = true;
  bool moved = false;
  if (!end.copied(chunk.ticket, ended).ok()) ended = true;
  for (Piece& piece : chunk.pieces) {
    if (piece.has_ended) continue;
    if (!piece.has_passed) drain_message(piece, receives);
    if (piece.end) piece.end->stop();
    if (piece.has_passed) (void)poll_end(piece, moved);
    ended = ended && piece.has_ended;
  }
  return ended;
}

// What is offered is not fetched any more.
void FarPairs::drain_message(Piece& piece, bool receives) {
  core::Completion completion;
  const bool failed = !wire_.test(piece.request, piece.has_passed, completion).ok();
  piece.has_passed = piece.has_passed || failed;
  if (!piece.has_passed || !receives) return;
  if (piece.first_bytes == 0) {
    const bool has_size = !failed && completion.received_bytes >= sizeof(Size);
    if (has_size && !learn_size(piece).ok()) refuse(*piece.pair, 0, false);
    piece.pair->is_known = true;
  }
  const Transport::Name name = failed ? 0 : name_in(piece, completion.received_bytes);
  if (name != 0) transport_->dismiss(piece.pair->peer, name);
}

// In place of a pair's first piece its size alone, which tells how many follow; of the others
// nothing.
void FarPairs::drain_sends() {
  std::ranges::for_each(sending_, [this](Chunk& chunk) { take_back(chunk); });
  std::erase_if(sending_, [this](Chunk& chunk) { return drain(chunk, false); });
  for (Pair* pair = next(true); pair != nullptr && sending_.size() < kPiecesUnderWayMax;
       pair = next(true)) {
    Chunk& chunk = sending_.emplace_back();
    chunk.note.size = pair->size_bytes | (pair->is_offered ? kOffered : 0);
    Piece piece = begin_piece(*pair);
    piece.is_posted = core::begins_in_two_tries([&] {
      return wire_.send(pair->peer, tags_.pieces, &chunk.note.size, piece.prefix_bytes(),
                        piece.request);
    });
    if (piece.is_posted) {
      chunk.pieces.push_back(std::move(piece));
    } else {
      sending_.pop_back();
    }
  }
}

// Into memory that need be no device's, which may be what has failed.
bool FarPairs::drain_receives() {
  std::ranges::for_each(receiving_, [this](Chunk& chunk) { take_back(chunk); });
  std::erase_if(receiving_, [this](Chunk& chunk) { return drain(chunk, true); });
  for (Pair* pair = next(false); pair != nullptr && receiving_.size() < kPiecesUnderWayMax;
       pair = next(false)) {
    if (pair->begun_bytes != 0 && !pair->is_known) return false;
    const std::size_t most_bytes =
        pair->begun_bytes == 0 ? sizeof(Size) + first_bytes_max() : parcel_bytes_;
    Chunk chunk;
    if (!device::staging_pool().acquire_sparse(most_bytes, chunk.parcel).ok()) return false;
    Piece piece = begin_piece(*pair);
    piece.message = static_cast<std::byte*>(chunk.parcel.data());
    piece.is_posted = core::begins_in_two_tries([&] {
      return wire_.receive(pair->peer, tags_.pieces, piece.message, most_bytes, piece.request);
    });
    if (!piece.is_posted) {
      pair->is_known = true;
      continue;
    }
    chunk.pieces.push_back(std::move(piece));
    receiving_.push_back(std::move(chunk));
  }
  return receiving_.empty();
}

}  // namespace accord::coll
