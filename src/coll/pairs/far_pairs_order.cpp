// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which pair comes next. There may be as many as ranks, and as many pieces: none of these functions
// takes steps as there are pairs for each piece.
#include <algorithm>
#include <utility>

#include "coll/pairs/far_pairs.h"

namespace accord::coll {
namespace {

// Of long pairs under way at a time in either direction: enough for a network's rate, and one that
// is being copied. With 2 MiB two ranks a host got 85 % of a link of 2 Gbit/s, with 8 MiB 74 %, and
// with 1 MiB 95 %; longer parcels are for networks that take more.
constexpr std::size_t kParcelsUnderWay = 3;
// Long pairs that are looked at for one that may go on.
constexpr int kPairsLookedAt = 4;
// Copied together: their receiver has memory for the longest first piece of each, 8 MiB.
constexpr std::size_t kShortPairsMax = 128;

}  // namespace

// They are in the order of their rounds.
const FarPairs::Pair* FarPairs::find(const std::vector<Pair>& pairs, int peer) const noexcept {
  const auto round_of = [this](const Pair& pair) { return round_with(pair.peer); };
  const auto found = std::ranges::lower_bound(pairs, round_with(peer), {}, round_of);
  return found == pairs.end() || found->peer != peer ? nullptr : &*found;
}

// From the first that is short, or is not, and is not all begun.
std::span<FarPairs::Pair> FarPairs::left(bool sends, bool is_short) noexcept {
  const std::span<Pair> pairs = sends ? outgoing_ : incoming_;
  Left& all_left = sends ? outgoing_left_ : incoming_left_;
  std::size_t& first = is_short ? all_left.of_short : all_left.of_long;
  const std::size_t before = first;
  while (first < pairs.size() &&
         (pairs[first].is_short != is_short || pairs[first].begun_bytes == pairs[first].size_bytes))
    ++first;
  looks_.fetch_add(first - before + 1, std::memory_order_relaxed);
  return pairs.subspan(first);
}

// Whose next piece comes next.
FarPairs::Pair* FarPairs::next(bool sends) noexcept {
  const std::span<Pair> of_short = left(sends, true);
  const std::span<Pair> of_long = left(sends, false);
  const std::span<Pair> longer = of_short.size() > of_long.size() ? of_short : of_long;
  return longer.empty() ? nullptr : longer.data();
}

// Not all of it is begun any more.
void FarPairs::begin_again(const Pair& pair) noexcept {
  const auto before = [&pair](const std::vector<Pair>& pairs, Left& all_left) {
    if (&pair < pairs.data() || &pair >= pairs.data() + pairs.size()) return;
    const auto place = static_cast<std::size_t>(&pair - pairs.data());
    all_left.of_short = std::min(all_left.of_short, place);
    all_left.of_long = std::min(all_left.of_long, place);
  };
  before(outgoing_, outgoing_left_);
  before(incoming_, incoming_left_);
}

// Adds one if there is something to begin: short pairs, after those that went before, and with the
// first of them all that are bundled; else a piece of a long one.
bool FarPairs::next_chunk(bool sends) {
  Chunks& chunks = sends ? sending_ : receiving_;
  Chunk chunk;
  tries_.fetch_add(1, std::memory_order_relaxed);
  if (std::ranges::none_of(chunks, &Chunk::is_of_short)) begin_short(sends, chunk);
  if (chunk.pieces.empty()) {
    Pair* const next_long = next_long_pair(sends);
    if (next_long == nullptr) return false;
    chunk.pieces.push_back(begin_piece(*next_long));
  }
  chunks.push_back(std::move(chunk));
  return true;
}

void FarPairs::begin_short(bool sends, Chunk& chunk) {
  Left& all_left = sends ? outgoing_left_ : incoming_left_;
  std::size_t messages = 0;
  std::size_t looked_at = 0;
  for (Pair& pair : left(sends, true)) {
    ++looked_at;
    if (!pair.is_short || pair.begun_bytes == pair.size_bytes) continue;
    if (!pair.is_bundled && ++messages > kShortPairsMax) {
      if (!all_left.has_bundled) break;
      continue;
    }
    chunk.is_of_short = true;
    chunk.pieces.push_back(begin_piece(pair));
  }
  all_left.has_bundled = false;
  looks_.fetch_add(looked_at, std::memory_order_relaxed);
}

// The first that is not all begun, if there is room. Where that has to wait, one behind it, which
// leaves room for it: so nothing behind it can hold it up.
FarPairs::Pair* FarPairs::next_long_pair(bool sends) {
  std::size_t pieces = 0;
  std::size_t total_bytes = 0;
  for (const Chunk& chunk : sends ? sending_ : receiving_) {
    if (chunk.is_of_short) continue;
    ++pieces;
    for (const Piece& piece : chunk.pieces) total_bytes += piece.length_bytes;
  }
  if (pieces >= kPiecesUnderWayMax || total_bytes >= bytes_under_way_max()) return nullptr;
  int looked_at = 0;
  for (Pair& pair : left(sends, false)) {
    looks_.fetch_add(1, std::memory_order_relaxed);
    if (pair.is_short || pair.begun_bytes == pair.size_bytes) continue;
    const bool leaves_room =
        pieces + 1 < kPiecesUnderWayMax &&
        total_bytes + piece_bytes(pair) + piece_bytes_max() <= bytes_under_way_max();
    if (looked_at++ > 0 && (looked_at > kPairsLookedAt || !leaves_room)) break;
    if (may_go_on(pair, sends)) return &pair;
  }
  return nullptr;
}

// As far as it is known how much there is, and side by side with the other direction: UCX over TCP
// asks for what it receives behind what it has to send, and where one direction gets ahead they
// take turns. Two hosts of a rank got 60 % of a link of 4 Gbit/s, and get 95 %.
bool FarPairs::may_go_on(const Pair& pair, bool sends) const {
  if (pair.begun_bytes != 0 && !pair.is_known) return false;
  const Pair* const other = find(sends ? incoming_ : outgoing_, pair.peer);
  if (other == nullptr) return true;
  const std::size_t ended_bytes = ended_bytes_of(*other, sends ? receiving_ : sending_);
  return ended_bytes == other->size_bytes || pair.begun_bytes < ended_bytes + bytes_under_way_max();
}

// All that comes before its first piece under way.
std::size_t FarPairs::ended_bytes_of(const Pair& pair, const Chunks& chunks) noexcept {
  std::size_t ended_bytes = pair.begun_bytes;
  for (const Chunk& chunk : chunks)
    for (const Piece& piece : chunk.pieces)
      if (piece.pair == &pair) ended_bytes = std::min(ended_bytes, piece.first_bytes);
  return ended_bytes;
}

std::size_t FarPairs::bytes_under_way_max() const noexcept {
  return kParcelsUnderWay * piece_bytes_max();
}

}  // namespace accord::coll
