// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/two_level/far_pairs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/node/pairwise_exchange.h"

namespace accord::core {
namespace {

// Of a pair's first chunk: what its receiver has memory for before it knows how much comes.
constexpr std::size_t kFirstBytesMax = std::size_t{64} << 10;
// Under way at a time in either direction: enough short chunks for a network's latency, and enough
// long ones for its rate.
constexpr std::size_t kChunksUnderWayMax = 32;
constexpr std::size_t kBytesUnderWayMax = std::size_t{8} << 20;

}  // namespace

FarPairs::FarPairs(Wire& wire, const Placement& placement, device::DeviceRuntime& runtime,
                   const Pipeline& pipeline, int tag)
    : wire_(wire), placement_(placement), runtime_(runtime), pipeline_(pipeline), tag_(tag) {}

// Not before the first step: only then the ends are where the bytes are.
void FarPairs::find_pairs() {
  if (std::exchange(began_, true)) return;
  const int ranks = placement_.ranks();
  const auto add = [&](const PipelineEnd& end, int peer, std::vector<Pair>& pairs) {
    const auto block = static_cast<std::size_t>(peer);
    if (end.blocks.empty() || end.blocks[block].size_bytes() == 0) return;
    Pair pair{.peer = peer, .block = end, .size_bytes = end.blocks[block].size_bytes()};
    pair.block.segment = end.blocks[block];
    pair.block.blocks.clear();
    pairs.push_back(std::move(pair));
  };
  for (int round = 0; round < ranks; ++round) {
    const int peer = (round - pipeline_.rank + ranks) % ranks;
    if (placement_.node(peer) == placement_.node(pipeline_.rank)) continue;
    add(pipeline_.in, peer, outgoing_);
    add(pipeline_.out, peer, incoming_);
  }
}

Status FarPairs::advance(bool& done) {
  find_pairs();
  for (bool moved = true; moved;) {
    moved = false;
    ACCORD_TRY(begin_sends(moved));
    ACCORD_TRY(begin_receives(moved));
    ACCORD_TRY(poll_sends(moved));
    ACCORD_TRY(poll_receives(moved));
  }
  done = sending_.empty() && receiving_.empty();
  return done ? mistake_ : Status();
}

bool FarPairs::has_block_of(int peer) const {
  return std::ranges::none_of(
      incoming_, [peer](const Pair& pair) { return pair.peer == peer && pair.is_refused; });
}

std::size_t FarPairs::chunk_bytes(const Pair& pair) const noexcept {
  const std::size_t most = pair.begun_bytes == 0 ? std::min(kFirstBytesMax, pipeline_.chunk_bytes)
                                                 : pipeline_.chunk_bytes;
  return std::min(most, pair.size_bytes - pair.begun_bytes);
}

// Whose next chunk comes next: how many a pair has is known once its first has come.
FarPairs::Pair* FarPairs::next(std::vector<Pair>& pairs) noexcept {
  const auto found = std::ranges::find_if(
      pairs, [](const Pair& pair) { return pair.begun_bytes < pair.size_bytes; });
  return found == pairs.end() ? nullptr : &*found;
}

bool FarPairs::has_room(const std::list<Chunk>& chunks) noexcept {
  std::size_t total_bytes = 0;
  for (const Chunk& chunk : chunks) total_bytes += chunk.length_bytes;
  return chunks.size() < kChunksUnderWayMax && total_bytes < kBytesUnderWayMax;
}

Status FarPairs::begin_sends(bool& moved) {
  for (Pair* pair = next(outgoing_); pair != nullptr && has_room(sending_);
       pair = next(outgoing_)) {
    Chunk chunk{Chunk::State::copying, pair, pair->begun_bytes, chunk_bytes(*pair)};
    ACCORD_TRY(device::staging_pool().acquire(&runtime_, chunk.prefix_bytes() + chunk.length_bytes,
                                              chunk.parcel));
    ACCORD_TRY(pair->block.copy(Direction::pack, chunk.first_bytes, chunk.length_bytes,
                                chunk.bytes(), chunk.ticket));
    pair->begun_bytes += chunk.length_bytes;
    sending_.push_back(std::move(chunk));
    moved = true;
  }
  return {};
}

Status FarPairs::begin_receives(bool& moved) {
  for (Pair* pair = next(incoming_); pair != nullptr && has_room(receiving_);
       pair = next(incoming_)) {
    const bool is_first = pair->begun_bytes == 0;
    if (!is_first && !pair->is_known) return {};
    Chunk chunk{Chunk::State::in_wire, pair, pair->begun_bytes, chunk_bytes(*pair)};
    const std::size_t most_bytes =
        is_first ? std::min(kFirstBytesMax, pipeline_.chunk_bytes) : chunk.length_bytes;
    const std::size_t parcel_bytes = chunk.prefix_bytes() + most_bytes;
    ACCORD_TRY(device::staging_pool().acquire(&runtime_, parcel_bytes, chunk.parcel));
    ACCORD_TRY(wire_.receive(pair->peer, tag_, chunk.parcel.data(), parcel_bytes, chunk.request));
    pair->begun_bytes += chunk.length_bytes;
    receiving_.push_back(std::move(chunk));
    moved = true;
  }
  return {};
}

// Chunks of a pair go in their order.
Status FarPairs::poll_sends(bool& moved) {
  for (auto chunk = sending_.begin(); chunk != sending_.end();) {
    bool done = false;
    if (chunk->state == Chunk::State::copying) {
      Pair& pair = *chunk->pair;
      if (pair.copied_bytes == chunk->first_bytes)
        ACCORD_TRY(pair.block.copied(chunk->ticket, done));
      if (done) {
        pair.copied_bytes += chunk->length_bytes;
        moved = true;
        ACCORD_TRY(give_to_wire(*chunk));
      }
      ++chunk;
      continue;
    }
    Completion completion;
    ACCORD_TRY(wire_.test(chunk->request, done, completion));
    moved = moved || done;
    chunk = done ? sending_.erase(chunk) : std::next(chunk);
  }
  return {};
}

Status FarPairs::give_to_wire(Chunk& chunk) {
  if (chunk.prefix_bytes() != 0) {
    const Size size_bytes = chunk.pair->size_bytes;
    std::memcpy(chunk.parcel.data(), &size_bytes, sizeof size_bytes);
  }
  ACCORD_TRY(wire_.send(chunk.pair->peer, tag_, chunk.parcel.data(),
                        chunk.prefix_bytes() + chunk.length_bytes, chunk.request));
  chunk.state = Chunk::State::in_wire;
  return {};
}

Status FarPairs::poll_receives(bool& moved) {
  for (auto chunk = receiving_.begin(); chunk != receiving_.end();) {
    bool done = false;
    if (chunk->state == Chunk::State::in_wire) {
      Completion completion;
      ACCORD_TRY(wire_.test(chunk->request, done, completion));
      if (done) {
        moved = true;
        ACCORD_TRY(land(*chunk, completion.received_bytes));
      }
      done = done && chunk->pair->is_refused;
    }
    if (chunk->state == Chunk::State::landed && may_unpack(*chunk)) {
      ACCORD_TRY(chunk->pair->block.copy(Direction::unpack, chunk->first_bytes, chunk->length_bytes,
                                         chunk->bytes(), chunk->ticket));
      chunk->state = Chunk::State::copying;
    }
    if (chunk->state == Chunk::State::copying)
      ACCORD_TRY(chunk->pair->block.copied(chunk->ticket, done));
    moved = moved || done;
    chunk = done ? receiving_.erase(chunk) : std::next(chunk);
  }
  return {};
}

Status FarPairs::land(Chunk& chunk, std::size_t received_bytes) {
  chunk.state = Chunk::State::landed;
  chunk.pair->is_known = true;
  if (received_bytes == 0)
    return {StatusCode::device_error, "nodes: a rank of another node has given up"};
  if (chunk.first_bytes == 0) learn_size(chunk);
  return {};
}

// Where it is not what is expected, what comes is let go.
void FarPairs::learn_size(Chunk& chunk) {
  Pair& pair = *chunk.pair;
  Size sent_bytes = 0;
  std::memcpy(&sent_bytes, chunk.parcel.data(), sizeof sent_bytes);
  if (sent_bytes == pair.size_bytes) return;
  keep_first(mistake_, PairwiseExchange::mismatch(pair.peer, sent_bytes, pair.size_bytes));
  pair.is_refused = true;
  pair.size_bytes = sent_bytes;
  pair.begun_bytes = 0;
  pair.begun_bytes = chunk_bytes(pair);
}

// In place, not what this rank has yet to send.
bool FarPairs::may_unpack(const Chunk& chunk) const {
  if (chunk.pair->is_refused) return false;
  if (!pipeline_.in_place) return true;
  const auto sent = std::ranges::find(outgoing_, chunk.pair->peer, &Pair::peer);
  return sent == outgoing_.end() ||
         sent->copied_bytes >= std::min(sent->size_bytes, chunk.first_bytes + chunk.length_bytes);
}

void FarPairs::stop(bool& done) {
  find_pairs();
  drain_sends();
  done = drain_receives() && sending_.empty() && next(outgoing_) == nullptr;
}

// What has failed has ended.
void FarPairs::drain_sends() {
  for (auto chunk = sending_.begin(); chunk != sending_.end();) {
    bool ended = true;
    if (chunk->state == Chunk::State::in_wire) {
      Completion completion;
      if (!wire_.test(chunk->request, ended, completion).ok()) ended = true;
    } else {
      if (!chunk->pair->block.copied(chunk->ticket, ended).ok()) ended = true;
      if (ended && wire_.send(chunk->pair->peer, tag_, &tag_, 0, chunk->request).ok()) {
        chunk->state = Chunk::State::in_wire;
        ended = false;
      }
    }
    chunk = ended ? sending_.erase(chunk) : std::next(chunk);
  }
  for (Pair* pair = next(outgoing_); pair != nullptr && has_room(sending_);
       pair = next(outgoing_)) {
    Chunk chunk{Chunk::State::in_wire, pair, pair->begun_bytes, chunk_bytes(*pair)};
    pair->begun_bytes += chunk.length_bytes;
    if (wire_.send(pair->peer, tag_, &tag_, 0, chunk.request).ok())
      sending_.push_back(std::move(chunk));
  }
}

// Into memory that need be no device's, which may be what has failed.
bool FarPairs::drain_receives() {
  for (auto chunk = receiving_.begin(); chunk != receiving_.end();) {
    bool ended = true;
    if (chunk->state == Chunk::State::in_wire) {
      Completion completion;
      if (!wire_.test(chunk->request, ended, completion).ok()) ended = true;
      if (ended && chunk->first_bytes == 0) {
        chunk->pair->is_known = true;
        if (completion.received_bytes != 0) learn_size(*chunk);
      }
    } else if (chunk->state == Chunk::State::copying) {
      if (!chunk->pair->block.copied(chunk->ticket, ended).ok()) ended = true;
    }
    chunk = ended ? receiving_.erase(chunk) : std::next(chunk);
  }
  for (Pair* pair = next(incoming_); pair != nullptr && has_room(receiving_);
       pair = next(incoming_)) {
    if (pair->begun_bytes != 0 && !pair->is_known) return false;
    Chunk chunk{Chunk::State::in_wire, pair, pair->begun_bytes, chunk_bytes(*pair)};
    const std::size_t most_bytes = sizeof(Size) + std::max(kFirstBytesMax, pipeline_.chunk_bytes);
    if (!device::staging_pool().acquire_sparse(most_bytes, chunk.parcel).ok()) return false;
    pair->begun_bytes += chunk.length_bytes;
    if (wire_.receive(pair->peer, tag_, chunk.parcel.data(), most_bytes, chunk.request).ok())
      receiving_.push_back(std::move(chunk));
    else
      pair->is_known = true;
  }
  return receiving_.empty();
}

}  // namespace accord::core
