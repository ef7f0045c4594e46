// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How far each rank of a node is with the votes of its communicators, in shared memory: a rank
// whose own part of a vote has failed can tell that by no message, since its peers do not know that
// they should listen. Knows no MPI and no vendor.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace accord::node {

// What one rank says of one communicator.
struct VoteLine {
  std::atomic<std::uint64_t> comm{0};   // as CallEntry::comm; 0: nobody's
  std::atomic<std::uint64_t> votes{0};  // all of these have come to an end here
  // The rank has no part in calls from this number on (CallEntry::number).
  std::atomic<std::uint64_t> left_at{kNever};
  std::atomic<std::uint64_t> is_free{0};  // for another communicator, but it may still be read

  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
};

// The lines of one rank, written by its process alone.
class VoteBoard {
 public:
  // For a communicator that has none yet; null where there is no room. Thread-safe.
  VoteLine* take(std::uint64_t comm) noexcept {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      std::uint64_t nobody = 0;
      if (place(comm, i).comm.compare_exchange_strong(nobody, comm)) return &place(comm, i);
    }
    for (std::size_t i = 0; i < kPlaces; ++i) {
      VoteLine& line = place(comm, i);
      if (line.is_free.exchange(0) == 0) continue;
      line.comm.store(kBetween);
      line.votes.store(0);
      line.comm.store(comm);
      return &line;
    }
    return nullptr;
  }
  // Once no call of its communicator is under way here. That a rank has left stays known.
  static void give_back(VoteLine& line) noexcept {
    if (line.left_at.load() == VoteLine::kNever) line.is_free.store(1);
  }

  struct Said {
    bool anything = false;
    std::uint64_t votes = 0;
    std::uint64_t left_at = VoteLine::kNever;
  };
  Said read(std::uint64_t comm) const noexcept {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const VoteLine& line = const_cast<VoteBoard*>(this)->place(comm, i);
      const std::uint64_t whose = line.comm.load();
      if (whose == 0) break;  // one before this place would have been free for it
      if (whose != comm) continue;
      const Said said{true, line.votes.load(), line.left_at.load()};
      if (line.comm.load() == comm) return said;
    }
    return {};
  }

 private:
  static constexpr std::size_t kLines = 1024;
  static constexpr std::size_t kPlaces = 64;  // for one communicator, which gets one of them
  static constexpr std::uint64_t kBetween = std::numeric_limits<std::uint64_t>::max();

  VoteLine& place(std::uint64_t comm, std::size_t i) noexcept {
    return lines_[((comm * 0x9e3779b97f4a7c15ull >> 32) + i) % kLines];
  }

  std::array<VoteLine, kLines> lines_;
};

}  // namespace accord::node
