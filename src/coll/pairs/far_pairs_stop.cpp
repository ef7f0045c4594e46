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
  if (!end.copied(chunk.ticket, ended).ok()) ended = true;
  for (Piece& piece : chunk.pieces) {
    if (piece.has_ended) continue;
    core::Completion completion;
    const bool failed = !wire_.test(piece.request, piece.has_ended, completion).ok();
    piece.has_ended = piece.has_ended || failed;
    ended = ended && piece.has_ended;
    if (!piece.has_ended || !receives || piece.first_bytes != 0) continue;
    piece.pair->is_known = true;
    if (!failed) learn_size(piece);
  }
  return ended;
}

// In place of a pair's first piece its size alone, which tells how many follow; of the others
// nothing.
void FarPairs::drain_sends() {
  static_assert(sizeof(Size) == sizeof(Pair::size_bytes));
  std::ranges::for_each(sending_, [this](Chunk& chunk) { take_back(chunk); });
  std::erase_if(sending_, [this](Chunk& chunk) { return drain(chunk, false); });
  for (Pair* pair = next(true); pair != nullptr && sending_.size() < kPiecesUnderWayMax;
       pair = next(true)) {
    Piece piece = begin_piece(*pair);
    piece.is_posted = core::begins_in_two_tries([&] {
      return wire_.send(pair->peer, tags_.pieces, &pair->size_bytes, piece.prefix_bytes(),
                        piece.request);
    });
    if (!piece.is_posted) continue;
    sending_.emplace_back().pieces.push_back(piece);
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
    piece.bytes = static_cast<std::byte*>(chunk.parcel.data()) + piece.prefix_bytes();
    piece.is_posted = core::begins_in_two_tries([&] {
      return wire_.receive(pair->peer, tags_.pieces, piece.message(), most_bytes, piece.request);
    });
    if (!piece.is_posted) {
      pair->is_known = true;
      continue;
    }
    chunk.pieces.push_back(piece);
    receiving_.push_back(std::move(chunk));
  }
  return receiving_.empty();
}

}  // namespace accord::coll
