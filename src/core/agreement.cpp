// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/agreement.h"

#include <bit>

namespace accord::core {
namespace {

// As good as random, and the same on all ranks (the finalizer of SplitMix64).
std::uint64_t scrambled(std::uint64_t number) noexcept {
  number *= 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

}  // namespace

std::uint64_t Key::hash() const noexcept {
  // FNV-1a over the fields; the top bit is cleared so that the value and its complement order as
  // integers do.
  std::uint64_t hash = 14695981039346656037ull;
  for (std::uint64_t word : {std::uint64_t{collective}, std::uint64_t{op},
                             std::uint64_t{element_type}, size_bytes, blocks}) {
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ ((word >> (8 * byte)) & 0xff)) * 1099511628211ull;
  }
  return hash & 0x7fffffffffffffffull;
}

Vote Vote::cast(const Key& key, Ballot ballot) noexcept {
  const auto hash = static_cast<std::int64_t>(key.hash());
  // min(hash) and min(~hash) = ~max(hash) are complements of each other exactly when all hashes are
  // equal.
  const std::int64_t device = ballot == Ballot::device            ? kDevice
                              : ballot == Ballot::device_near     ? kDeviceNear
                              : ballot == Ballot::device_short    ? kDeviceShort
                              : ballot == Ballot::device_shortest ? kDeviceShortest
                                                                  : 0;
  Vote vote;
  vote.words = {hash, ~hash, device, ballot == Ballot::host ? -1 : 0};
  return vote;
}

bool ModeTable::votes(std::uint64_t number) noexcept {
  return number <= kVotePeriod ? std::has_single_bit(number) : number % kVotePeriod == 0;
}

// Null where there is no room, which one of kCallsPerPlace calls makes: a key drawn by lot gives
// way. A program that makes more kinds of calls in turn than there is room for so finds as many of
// them again as there is room for; if the oldest gave way each time it would find none.
ModeTable::Entry* ModeTable::entry_of(const Key& key) {
  if (const auto known = entries_.find(key); known != entries_.end()) return &known->second;
  if (keys_.size() < kKeysMax) {
    keys_.push_back(key);
  } else {
    const std::uint64_t lot = scrambled(++without_room_);
    if (lot % kCallsPerPlace != 0) return nullptr;
    Key& loser = keys_[lot / kCallsPerPlace % kKeysMax];
    entries_.erase(loser);
    loser = key;
  }
  return &entries_[key];
}

Turn ModeTable::next(const Key& key, Before before) {
  ++calls_;
  Entry unknown;
  Entry* const known = entry_of(key);
  Entry& entry = known != nullptr ? *known : unknown;
  const bool again = before == Before::known && entry.latest && votes_again(entry);
  Turn turn;
  turn.number = ++entry.calls;
  turn.votes = again || votes(turn.number);
  if (turn.votes) {
    // Now and then it is asked whether any still come.
    if (turn.number % kVotePeriod != 0) turn.before = std::move(entry.latest);
    entry.latest = std::make_shared<VoteResult>();
    entry.voted_at = turn.number;
  }
  turn.result = entry.latest;
  return turn;
}

}  // namespace accord::core
