// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the ranks of a stand-in for a collective library share: a segment of memory with a lane from
// every rank to every rank. The segment has no name in any file system, so nothing is left behind:
// its id says which process holds it open, and under which descriptor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace accord::fake {

inline constexpr int kRanksMax = 16;
inline constexpr std::size_t kLaneBytes = 32 * 1024;

// A stream of bytes from one rank to another. Both numbers only grow.
struct Lane {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::byte bytes[kLaneBytes];

  // As many bytes as fit, or as there are; says how many.
  std::size_t put(std::span<const std::byte> from);
  std::size_t take(std::span<std::byte> to);
};

// Messages of pairs of ranks have lanes of their own: a group may name them in any order with the
// collectives.
enum class Traffic { collective, pair };

struct Shared {
  std::atomic<int> rank_count;  // 0 until the first rank has come
  std::atomic<int> arrived;
  std::atomic<int> broken;  // a rank has failed: waiting for it is in vain
  std::atomic<int> taken[kRanksMax];
  std::atomic<int> device[kRanksMax];
  Lane lanes[2][kRanksMax][kRanksMax];  // of traffic, from a rank, to a rank
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class Segment {
 public:
  // A new segment; its id is text, ended by a zero.
  static bool create(std::span<char> id);
  // Null where the process that made it, or the segment, is no more.
  static std::unique_ptr<Segment> open(std::span<const char> id);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Shared& shared() const { return *shared_; }
  Lane& lane(Traffic traffic, int from, int to) const {
    return shared_->lanes[static_cast<int>(traffic)][from][to];
  }
  // All ranks have opened it: nobody will ask for the descriptor again.
  void complete();

 private:
  Segment(Shared* shared, std::uint64_t inode) : shared_(shared), inode_(inode) {}

  Shared* shared_;
  std::uint64_t inode_;
};

}  // namespace accord::fake
