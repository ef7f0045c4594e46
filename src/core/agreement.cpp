// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/agreement.h"

#include <bit>

namespace accord::core {

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

Turn ModeTable::next(const Key& key) {
  if (entries_.size() >= kKeysMax && !entries_.contains(key)) entries_.clear();
  Entry& entry = entries_[key];
  const std::uint64_t number = ++entry.calls;
  Turn turn;
  turn.number = number;
  turn.votes = votes(number);
  if (turn.votes) entry.latest = std::make_shared<VoteResult>();
  turn.result = entry.latest;
  return turn;
}

}  // namespace accord::core
