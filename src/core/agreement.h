// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether a rank's buffer is on a device is a local fact; which algorithm runs must be a global
// one. The mode of call number n of a key is the vote carried by its call 1, 2, 4, ..., 1,024, then
// every 1,024th; "the latest value" is never read. Votes ride as the first step of their call's
// schedule. Where pairs of ranks may differ in size a key says nothing of it, so what was voted
// with short pairs is voted on again soon: longer ones may come.
//
// A key holds only what MPI makes equal on all ranks; local facts (a derived type, absolute
// addresses, alignment) never decline a path. A vote carries a hash of the key, so that ranks that
// make different calls get an error instead of a hang. Knows no mpi.h.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace accord::coll {
// What a vote chooses between: coll/algorithm.h.
struct Algorithm;
}  // namespace accord::coll

namespace accord::core {

// What MPI makes equal on all ranks of a communicator for one call.
struct Key {
  std::uint32_t collective = 0;
  std::uint32_t op = 0;            // canonical, never a handle's value
  std::uint32_t element_type = 0;  // canonical; reductions only
  std::uint64_t size_bytes = 0;
  std::uint64_t blocks = 0;  // a hash of their sizes, where these differ by rank

  bool operator==(const Key&) const = default;
  std::uint64_t hash() const noexcept;
};

// The same in short, for a board of the node: cheaper than the hash of votes.
struct CallMark {
  std::uint64_t what = 0;
  std::uint64_t size_bytes = 0;

  bool operator==(const CallMark&) const = default;
  static CallMark of(const Key& key) noexcept {
    const std::uint64_t kind =
        std::uint64_t{key.collective} << 32 | key.op << 16 | key.element_type;
    return {((key.size_bytes ^ kind) * 0x9e3779b97f4a7c15ull ^ key.blocks) * 0x9e3779b97f4a7c15ull,
            key.size_bytes};
  }
};

// What one rank says: neutral without a significant buffer or with count 0. device_short: on a
// device, but worth no way but inboxes as far as this rank goes; device_shortest: or that between
// nodes on which blocks travel together; device_near: worth each way within a node, and no other.
enum class Ballot { neutral, host, device_shortest, device_short, device_near, device };

// The 32 bytes that are combined by an element-wise minimum over all ranks.
struct Vote {
  std::array<std::int64_t, 4> words{};

  static Vote cast(const Key& key, Ballot ballot) noexcept;
  // False when the ranks did not all make the same call.
  bool agreed() const noexcept { return words[0] == ~words[1]; }
  bool any_device() const noexcept { return words[2] != 0; }
  bool all_near() const noexcept { return words[2] > kDevice; }
  bool all_short() const noexcept { return words[2] > kDeviceNear; }
  bool all_shortest() const noexcept { return words[2] > kDeviceShort; }
  bool any_host() const noexcept { return words[3] != 0; }
  void count_as_long() noexcept { words[2] = kDevice; }

 private:
  static constexpr std::int64_t kDeviceShortest = -1;
  static constexpr std::int64_t kDeviceShort = -2;
  static constexpr std::int64_t kDeviceNear = -3;
  static constexpr std::int64_t kDevice = -4;
};

// The outcome of one voting call, filled when its vote arrives; later calls of the key hold it too.
struct VoteResult {
  VoteResult() = default;
  VoteResult(const VoteResult& other)
      : known(other.known.load()),
        algorithm(other.algorithm),
        why(other.why),
        votes_again_after(other.votes_again_after),
        had_long_pairs(other.had_long_pairs) {}
  VoteResult& operator=(const VoteResult&) = delete;

  // Written last, since a thread that begins a later call may look while another takes the vote.
  std::atomic<bool> known{false};
  const coll::Algorithm* algorithm = nullptr;  // null: one call of the host MPI on whole buffers
  std::string why;                             // not by a better one, for people
  // So many calls, since it is the host MPI's own for short pairs alone; 0: as the numbers say.
  std::uint64_t votes_again_after = 0;
  bool had_long_pairs = false;  // or a vote before it
};

struct Turn {
  std::uint64_t number = 0;            // of this call among those of its key, from 1
  bool votes = false;                  // this call carries the vote
  std::shared_ptr<VoteResult> result;  // the vote that decides this call
  std::shared_ptr<VoteResult> before;  // the one before it, of a call that votes; null: forgotten
};

// Call numbers and votes of one communicator. All ranks call next() in the same order, so where
// there are more keys than the bound below the same ones are forgotten at the same call everywhere.
// Not thread-safe: the engine's lock protects it.
class ModeTable {
 public:
  static constexpr std::size_t kKeysMax = 4096;
  static constexpr std::uint64_t kVotePeriod = 1024;
  static constexpr std::uint64_t kShortVotePeriodMax = 33;
  // Of a blocking call all ranks know all earlier votes.
  enum class Before { known, under_way };
  Turn next(const Key& key, Before before = Before::under_way);
  // Counts the next call of `key` if it does not vote and the votes so far say an algorithm (null:
  // the host MPI's own) that `accepts`, and returns that; else nothing, and no turn is taken. Needs
  // no lock while nothing of this communicator is under way: then nobody else has to do with its
  // table.
  template <class Accepts>
  std::optional<const coll::Algorithm*> next_if(const Key& key, Accepts accepts) {
    const auto found = rests_ ? entries_.end() : entries_.find(key);
    if (found == entries_.end() || votes(found->second.calls + 1)) return std::nullopt;
    const VoteResult& result = *found->second.latest;
    if (!result.known || votes_again(found->second) || !accepts(result.algorithm))
      return std::nullopt;
    ++found->second.calls;
    ++calls_;
    return result.algorithm;
  }
  bool next_is_of_host(const Key& key) {
    return next_if(key, [](const coll::Algorithm* voted) { return voted == nullptr; }).has_value();
  }

  // Every key votes anew.
  void clear() {
    entries_.clear();
    keys_.clear();
    without_room_ = 0;
  }

  // All calls so far, the same on all ranks between two of them.
  std::uint64_t calls() const noexcept { return calls_; }
  // Until it is told otherwise next_if says nothing.
  void rest(bool rests) noexcept { rests_ = rests; }
  bool rests() const noexcept { return rests_; }

 private:
  struct Entry {
    std::uint64_t calls = 0;
    std::uint64_t voted_at = 0;
    std::shared_ptr<VoteResult> latest;
  };
  struct KeyHash {
    // Local, and of every call: cheaper than the hash that ranks compare.
    std::size_t operator()(const Key& key) const noexcept {
      const std::uint64_t kind =
          std::uint64_t{key.collective} << 32 | key.op << 16 | key.element_type;
      return (key.size_bytes ^ kind) * 0x9e3779b97f4a7c15 >> 16;
    }
  };
  static bool votes(std::uint64_t number) noexcept;
  // Whether the next call does so, where all earlier votes are known. An odd number of calls after
  // the vote, since programs make short and long ones in turn; the seldomer the more there were.
  static bool votes_again(const Entry& entry) noexcept {
    if (!entry.latest->known || entry.latest->votes_again_after == 0) return false;
    const std::uint64_t number = entry.calls + 1;
    const std::uint64_t seldomer = std::min(number / 64, kShortVotePeriodMax) | 1;
    return number - entry.voted_at >= std::max(seldomer, entry.latest->votes_again_after);
  }
  static constexpr std::uint64_t kCallsPerPlace = 16;
  Entry* entry_of(const Key& key);

  std::unordered_map<Key, Entry, KeyHash> entries_;
  std::vector<Key> keys_;  // those of the entries
  std::uint64_t without_room_ = 0;
  std::uint64_t calls_ = 0;
  bool rests_ = false;
};

}  // namespace accord::core
