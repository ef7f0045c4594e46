// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/far_pairs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include "base/config.h"
#include "base/rounding.h"

namespace accord::coll {
namespace {

// Of a pair's first piece: what its receiver has memory for before it knows how much comes.
constexpr std::size_t kFirstBytesMax = Bundles::kBlockBytesMax;
// The same where it knows.
constexpr std::size_t kKnownFirstBytesMax = std::size_t{4} << 20;
// Of a piece that is offered: each makes a journey there and back first. No more than that where it
// goes through page-locked memory.
constexpr std::size_t kParcelsOfOffer = 16;
constexpr std::size_t kOfferBytesMax = std::size_t{8} << 20;
// In a parcel, of what a copy reads or writes.
constexpr std::size_t kAlignment = 64;

std::atomic<std::uint64_t> messages_begun{0};
std::atomic<std::uint64_t> copies_begun{0};

constexpr std::size_t whole_lines(std::size_t size_bytes) {
  return round_up(size_bytes, kAlignment);
}

}  // namespace

FarPairs::FarPairs(Links links, const core::Placement& placement, device::DeviceRuntime& runtime,
                   const CollArgs& args, Tags tags, std::size_t near_bytes)
    : wire_(links.wire),
      transport_(links.transport),
      placement_(placement),
      runtime_(runtime),
      args_(args),
      tags_(tags),
      parcel_bytes_(placement.parcel_bytes(args.parcel_bytes)),
      offer_bytes_(std::max(parcel_bytes_, std::min({kParcelsOfOffer * parcel_bytes_,
                                                     kOfferBytesMax, args.ways.offer_bytes_end}))),
      near_bytes_(near_bytes),
      knows_sizes_(!node::goes_by_pairs(args.exchange->kind)) {
  if (Bundles::pay(placement, args))
    bundles_.emplace(wire_, placement, runtime, args, tags.bundles);
}

FarPairs::Counters FarPairs::counters() noexcept {
  return {messages_begun.load(std::memory_order_relaxed), offers_.load(std::memory_order_relaxed),
          copies_begun.load(std::memory_order_relaxed), tries_.load(std::memory_order_relaxed),
          looks_.load(std::memory_order_relaxed)};
}

// Not before the first step: only then the ends are where the bytes are.
Status FarPairs::find_pairs() {
  if (std::exchange(began_, true)) return {};
  outgoing_ = pairs_of(args_.in, true);
  incoming_ = pairs_of(args_.out, false);
  if (!bundles_) return {};
  std::vector<std::size_t> sizes(static_cast<std::size_t>(placement_.ranks()));
  for (const Pair& pair : outgoing_) sizes[static_cast<std::size_t>(pair.peer)] = pair.size_bytes;
  ACCORD_TRY(bundles_->begin(std::move(sizes)));
  if (std::ranges::none_of(outgoing_, &Pair::is_bundled)) bundles_->send();
  return {};
}

// Those without bytes, too, where bundles tell of each pair: something may come all the same.
std::vector<FarPairs::Pair> FarPairs::pairs_of(const core::CallEnd& end, bool sends) const {
  std::vector<Pair> pairs;
  if (end.blocks.empty()) return pairs;
  const int ranks = placement_.ranks();
  const std::size_t short_bytes = short_bytes_max(args_);
  for (int round = 0; round < ranks; ++round) {
    const int peer = (round - args_.rank + ranks) % ranks;
    Pair pair{pair_of(end, peer)};
    const bool is_empty = pair.size_bytes == 0 && (!bundles_ || is_near(peer));
    if (is_empty || !takes(peer, pair.size_bytes)) continue;
    pair.is_bundled = bundles_ && bundles_->takes(sends ? args_.rank : peer,
                                                  sends ? peer : args_.rank, pair.size_bytes);
    pair.is_short = pair.is_bundled || pair.size_bytes <= short_bytes;
    pair.is_known = sends;
    pair.is_offered = sends && is_to_offer(pair);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Status FarPairs::advance(bool& done) {
  ACCORD_TRY(find_pairs());
  for (bool moved = true; moved;) {
    moved = false;
    ACCORD_TRY(advance_bundles(moved));
    ACCORD_TRY(begin_sends(moved));
    ACCORD_TRY(begin_receives(moved));
    ACCORD_TRY(poll_sends(moved));
    ACCORD_TRY(poll_receives(moved));
  }
  done = sending_.empty() && receiving_.empty() && (!bundles_ || bundles_->is_done());
  return done ? mistake_ : Status();
}

bool FarPairs::has_block_of(int peer) const {
  const Pair* const pair = find(incoming_, peer);
  return pair == nullptr || !pair->is_refused;
}

std::size_t FarPairs::first_bytes_max() const noexcept {
  return std::min(knows_sizes_ ? kKnownFirstBytesMax : kFirstBytesMax, parcel_bytes_);
}

// At most.
std::size_t FarPairs::bytes_to_come(const Piece& piece) const noexcept {
  return piece.first_bytes == 0 && !knows_sizes_ ? first_bytes_max() : piece.length_bytes;
}

std::size_t FarPairs::piece_bytes_max() const noexcept {
  return transport_ != nullptr ? offer_bytes_ : parcel_bytes_;
}

// No longer than a first piece.
std::size_t FarPairs::short_bytes_max(const CollArgs& args) noexcept {
  return std::min({kFirstBytesMax, args.parcel_bytes, config().packed_pair_bytes});
}

std::size_t FarPairs::piece_bytes(const Pair& pair) const noexcept {
  const std::size_t by_message = pair.begun_bytes == 0 ? first_bytes_max() : parcel_bytes_;
  const std::size_t most = pair.is_offered ? offer_bytes_ : by_message;
  return std::min(most, pair.size_bytes - pair.begun_bytes);
}

FarPairs::Piece FarPairs::begin_piece(Pair& pair) const noexcept {
  Piece piece{&pair, pair.begun_bytes, piece_bytes(pair), pair.is_bundled};
  pair.begun_bytes += piece.length_bytes;
  return piece;
}

// What is bundled is packed where it is sent, and unpacked where it came.
Status FarPairs::make_parcel(Chunk& chunk, bool receives) {
  const auto room_bytes = [&](const Piece& piece) {
    if (piece.is_bundled || piece.is_run) return std::size_t{0};
    if (piece.pair->is_offered) return whole_lines(piece.length_bytes);
    const std::size_t most_bytes = receives ? bytes_to_come(piece) : piece.length_bytes;
    return whole_lines(piece.prefix_bytes()) + whole_lines(most_bytes);
  };
  std::size_t total_bytes = 0;
  for (Piece& piece : chunk.pieces) {
    if (piece.pair->is_offered) find_place(receives ? args_.out : args_.in, chunk, piece);
    total_bytes += room_bytes(piece);
  }
  if (total_bytes != 0)
    ACCORD_TRY(device::staging_pool().acquire(&runtime_, total_bytes, chunk.parcel));
  auto* next_bytes = static_cast<std::byte*>(chunk.parcel.data());
  for (Piece& piece : chunk.pieces) {
    if (piece.is_bundled) {
      piece.bytes = receives ? nullptr : bundles_->place(piece.pair->peer);
      continue;
    }
    if (piece.pair->is_offered) {
      piece.bytes = next_bytes;
    } else {
      piece.bytes = next_bytes + whole_lines(piece.prefix_bytes());
      piece.message = piece.bytes - piece.prefix_bytes();
    }
    next_bytes += room_bytes(piece);
  }
  return {};
}

// In one batch, in which blocks of one length that lie side by side are one copy: those in one
// allocation, the parcel or a list.
Status FarPairs::copy(Direction direction, Chunk& chunk) {
  const bool packs = direction == Direction::pack;
  const core::CallEnd& end = packs ? args_.in : args_.out;
  constexpr int kParcel = -1;
  std::map<int, core::CopyBatch> by_allocation;
  for (const Piece& piece : chunk.pieces) {
    if (piece.pair->is_refused || piece.is_run) continue;
    const int peer = piece.pair->peer;
    add_copies(end, *piece.pair, direction, piece.first_bytes, piece.length_bytes, piece.bytes,
               by_allocation[piece.is_bundled ? bundles_->list_of(peer, packs) : kParcel]);
  }
  core::CopyBatch batch;
  for (auto& [allocation, copies] : by_allocation) batch.add(std::move(copies));
  if (!batch.empty()) {
    copies_begun.fetch_add(1, std::memory_order_relaxed);
    ACCORD_TRY(end.carry(batch, chunk.ticket));
  }
  chunk.state = Chunk::State::copying;
  return {};
}

Status FarPairs::begin_sends(bool& moved) {
  while (next_chunk(true)) {
    ACCORD_TRY(make_parcel(sending_.back(), false));
    ACCORD_TRY(copy(Direction::pack, sending_.back()));
    moved = true;
  }
  return {};
}

Status FarPairs::begin_receives(bool& moved) {
  while (next_chunk(false)) {
    ACCORD_TRY(make_parcel(receiving_.back(), true));
    ACCORD_TRY(post_receives(receiving_.back()));
    moved = true;
  }
  return {};
}

Status FarPairs::post_sends(Chunk& chunk) {
  if (std::ranges::any_of(chunk.pieces, &Piece::is_bundled)) bundles_->send();
  if (chunk.pieces.front().pair->is_offered) return post_offer(chunk);
  std::uint64_t begun = 0;
  for (Piece& piece : chunk.pieces) {
    if (piece.is_bundled) {
      piece.has_ended = true;
      continue;
    }
    ++begun;
    if (piece.first_bytes == 0) {
      const Size size_bytes = piece.pair->size_bytes;
      std::memcpy(piece.message, &size_bytes, sizeof size_bytes);
    }
    ACCORD_TRY(wire_.send(piece.pair->peer, tags_.pieces, piece.message,
                          piece.prefix_bytes() + piece.length_bytes, piece.request));
    piece.is_posted = true;
  }
  messages_begun.fetch_add(begun, std::memory_order_relaxed);
  chunk.state = Chunk::State::in_wire;
  return {};
}

Status FarPairs::post_receives(Chunk& chunk) {
  std::uint64_t begun = 0;
  for (Piece& piece : chunk.pieces) {
    if (piece.is_bundled) continue;
    ++begun;
    const bool is_name = piece.first_bytes != 0 && piece.pair->is_offered;
    const std::size_t most_bytes =
        piece.prefix_bytes() + (is_name ? sizeof(Transport::Name) : bytes_to_come(piece));
    ACCORD_TRY(
        wire_.receive(piece.pair->peer, tags_.pieces, piece.message, most_bytes, piece.request));
    piece.is_posted = true;
  }
  messages_begun.fetch_add(begun, std::memory_order_relaxed);
  chunk.state = Chunk::State::in_wire;
  return {};
}

// Once all have ended it has landed.
Status FarPairs::poll_messages(Chunk& chunk, bool receives, bool& moved) {
  bool all_ended = true;
  for (Piece& piece : chunk.pieces) {
    if (piece.has_ended) continue;
    if (piece.is_bundled) {
      piece.has_ended = has_looked_;
      all_ended = all_ended && piece.has_ended;
      // Read only from here on.
      if (has_looked_) piece.bytes = const_cast<std::byte*>(bundles_->from(piece.pair->peer).bytes);
      continue;
    }
    if (!piece.has_passed) {
      core::Completion completion;
      ACCORD_TRY(wire_.test(piece.request, piece.has_passed, completion));
      if (piece.has_passed && receives) ACCORD_TRY(land(chunk, piece, completion.received_bytes));
    }
    if (piece.has_passed) ACCORD_TRY(poll_end(piece, moved));
    all_ended = all_ended && piece.has_ended;
  }
  if (all_ended) chunk.state = Chunk::State::landed;
  return {};
}

// Pieces of a pair go in their order.
Status FarPairs::poll_sends(bool& moved) {
  for (auto chunk = sending_.begin(); chunk != sending_.end();) {
    if (chunk->state == Chunk::State::copying && is_turn(*chunk)) {
      bool copied = false;
      ACCORD_TRY(args_.in.copied(chunk->ticket, copied));
      if (copied) {
        moved = true;
        for (const Piece& piece : chunk->pieces) piece.pair->copied_bytes += piece.length_bytes;
        ACCORD_TRY(post_sends(*chunk));
      }
    } else if (chunk->state == Chunk::State::in_wire) {
      ACCORD_TRY(poll_messages(*chunk, false, moved));
    }
    const bool done = chunk->state == Chunk::State::landed;
    chunk = done ? sending_.erase(chunk) : std::next(chunk);
  }
  return {};
}

Status FarPairs::poll_receives(bool& moved) {
  for (auto chunk = receiving_.begin(); chunk != receiving_.end();) {
    bool done = false;
    if (chunk->state == Chunk::State::in_wire) ACCORD_TRY(poll_messages(*chunk, true, moved));
    if (chunk->state == Chunk::State::landed && may_unpack(*chunk))
      ACCORD_TRY(copy(Direction::unpack, *chunk));
    if (chunk->state == Chunk::State::copying) ACCORD_TRY(args_.out.copied(chunk->ticket, done));
    moved = moved || done;
    chunk = done ? receiving_.erase(chunk) : std::next(chunk);
  }
  return {};
}

Status FarPairs::land(Chunk& chunk, Piece& piece, std::size_t received_bytes) {
  const auto too_little = [] {
    return Status(StatusCode::device_error, "nodes: a rank of another node has sent too little");
  };
  if (received_bytes < piece.prefix_bytes()) return too_little();
  if (piece.first_bytes == 0) ACCORD_TRY(learn_size(piece));
  piece.pair->is_known = true;
  if (received_bytes == piece.prefix_bytes())
    return {StatusCode::device_error, "nodes: a rank of another node has given up"};
  if (piece.pair->is_offered) return fetch_offer(chunk, piece, received_bytes);
  const bool is_whole = received_bytes == piece.prefix_bytes() + piece.length_bytes;
  return is_whole || piece.pair->is_refused ? Status() : too_little();
}

// And whether it is offered. Where it is not what is expected, what comes is let go.
Status FarPairs::learn_size(Piece& piece) {
  Pair& pair = *piece.pair;
  Size word = 0;
  std::memcpy(&word, piece.message, sizeof word);
  const Size sent_bytes = word & ~kOffered;
  pair.is_offered = word != sent_bytes;
  if (pair.is_offered && transport_ == nullptr)
    return {StatusCode::device_error, "nodes: a rank of another node offers what none fetches"};
  if (sent_bytes != pair.size_bytes) {
    refuse(pair, sent_bytes, true);
  } else if (!pair.is_offered) {
    return {};
  }
  pair.begun_bytes = 0;
  piece.length_bytes = piece_bytes(pair);
  pair.begun_bytes = piece.length_bytes;
  return {};
}

void FarPairs::refuse(Pair& pair, std::size_t sent_bytes, bool comes_by_itself) {
  keep_first(mistake_, sends_other(pair.peer, sent_bytes, pair.size_bytes));
  pair.is_refused = true;
  pair.is_known = !comes_by_itself;  // its first piece tells how
  pair.is_short = false;
  pair.is_bundled = false;
  pair.size_bytes = comes_by_itself ? sent_bytes : 0;
  pair.begun_bytes = 0;
  begin_again(pair);
}

Status FarPairs::advance_bundles(bool& moved) {
  if (!bundles_) return {};
  ACCORD_TRY(bundles_->advance(moved));
  return bundles_->has_arrived() && !std::exchange(has_looked_, true) ? look_at_bundles()
                                                                      : Status();
}

Status FarPairs::look_at_bundles() {
  Status status;
  for (Pair& pair : incoming_)
    if (!is_near(pair.peer)) keep_first(status, look_at(pair, bundles_->from(pair.peer)));
  return status;
}

// What its sender has, whatever this rank expects, decides how it comes.
Status FarPairs::look_at(Pair& pair, const Bundles::Block& block) {
  const bool comes_by_itself = block.size_bytes != 0 && block.bytes == nullptr &&
                               !bundles_->takes(pair.peer, args_.rank, block.size_bytes);
  const bool waits_for_it = pair.size_bytes != 0 && !pair.is_bundled;
  // Then its first piece tells all.
  if (comes_by_itself && waits_for_it) return {};
  const bool is_lost = block.is_given_up && (block.size_bytes != 0 || pair.size_bytes != 0);
  if (block.size_bytes != pair.size_bytes) {
    withdraw(pair);
    refuse(pair, block.size_bytes, comes_by_itself);
  }
  if (!is_lost) return {};
  return {StatusCode::device_error, "nodes: a rank of another node has given up"};
}

// Its messages that will never come.
void FarPairs::withdraw(const Pair& pair) {
  for (Chunk& chunk : receiving_) {
    for (Piece& piece : chunk.pieces) {
      if (piece.pair != &pair || !piece.is_posted || std::exchange(piece.has_ended, true)) continue;
      if (!std::exchange(piece.has_passed, true)) wire_.cancel(piece.request);
    }
  }
}

bool FarPairs::is_turn(const Chunk& chunk) const {
  return std::ranges::all_of(chunk.pieces, [](const Piece& piece) {
    return piece.pair->copied_bytes == piece.first_bytes;
  });
}

// In place, not what this rank has yet to send.
bool FarPairs::may_unpack(const Chunk& chunk) const {
  if (!args_.in_place) return true;
  return std::ranges::all_of(chunk.pieces, [this](const Piece& piece) {
    if (piece.pair->is_refused) return true;
    const Pair* const sent = find(outgoing_, piece.pair->peer);
    return sent == nullptr ||
           sent->copied_bytes >= std::min(sent->size_bytes, piece.first_bytes + piece.length_bytes);
  });
}

}  // namespace accord::coll
