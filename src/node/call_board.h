// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which collective each rank of a node is in, by communicator, in shared memory: a rank that waits
// for long looks whether its peers are in the same one. Written at every such call, so that an
// entry is plain stores with a checksum instead of a lock. Knows no MPI and no vendor.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "node/vote_board.h"

namespace accord::node {

// One collective call of one rank.
struct CallEntry {
  std::uint64_t comm = 0;    // equal on all ranks of it, and on no other communicator of them
  std::uint64_t number = 0;  // of the call on that communicator, from 1
  std::uint64_t what =
      0;  // a hash of what MPI makes equal on all ranks; lowest bit: by the host MPI
  std::uint64_t size_bytes = 0;

  bool by_host() const noexcept { return (what & 1) != 0; }
  bool is_like(const CallEntry& other) const noexcept { return (what | 1) == (other.what | 1); }
};

// The last calls of one rank, written by its process alone.
class CallBoard {
 public:
  void write(const CallEntry& entry) noexcept {
    Words& words = place(entry.comm, entry.number);
    const std::uint64_t values[] = {entry.comm, entry.number, entry.what, entry.size_bytes,
                                    checksum(entry)};
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i].store(values[i], std::memory_order_relaxed);
  }
  // False where that call has not begun, or has been forgotten.
  bool read(std::uint64_t comm, std::uint64_t number, CallEntry& entry) const noexcept {
    const Words& words = const_cast<CallBoard*>(this)->place(comm, number);
    std::array<std::uint64_t, 5> values;
    for (std::size_t i = 0; i < words.size(); ++i)
      values[i] = words[i].load(std::memory_order_relaxed);
    entry = {values[0], values[1], values[2], values[3]};
    return entry.comm == comm && entry.number == number && values[4] == checksum(entry);
  }
  VoteBoard& votes() noexcept { return votes_; }
  const VoteBoard& votes() const noexcept { return votes_; }

 private:
  // Communicators that share a line overwrite each other: then nothing is seen.
  static constexpr std::size_t kComms = 32;
  static constexpr std::size_t kCalls = 8;  // a rank may be through with a call that others wait in
  using Words = std::array<std::atomic<std::uint64_t>, 5>;

  Words& place(std::uint64_t comm, std::uint64_t number) noexcept {
    return words_[comm * 0x9e3779b97f4a7c15ull >> 59][number % kCalls];
  }
  static_assert(kComms == std::size_t{1} << (64 - 59));

  static std::uint64_t checksum(const CallEntry& entry) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : {entry.comm, entry.number, entry.what, entry.size_bytes})
      sum = (sum ^ word) * 0x9e3779b97f4a7c15ull + 1;
    return sum;
  }

  std::array<std::array<Words, kCalls>, kComms> words_{};
  VoteBoard votes_;
};

}  // namespace accord::node
