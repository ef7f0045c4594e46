// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the processes of a node share for the window memory of one rank: a page of host memory that
// this rank has made. Two locks lie there.
// - The update lock: whoever reads, combines and writes back holds it, whether an origin of the
//   node, the target itself, or the target for an origin of another node. So each element has one
//   atomicity mechanism. Held for the copies of one accumulate, never while waiting for a peer.
// - The window lock: what MPI_Win_lock is about. It is ours since the host MPI may put a lock off
//   until it has an operation to send, or wait for the target's calls.
// Whoever waits asks whether the holder still lives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "node/life_line.h"
#include "node/registration.h"
#include "rma/pieces.h"

namespace accord::rma {

enum class LockKind : std::uint32_t { shared = 1, exclusive = 2 };

// What a rank has attached of devices to a dynamic window, by address: its peers of the node look
// before each operation, since what is not here is the host MPI's. One writer; what a peer may ask
// for has been there before it asks.
class DeviceRanges {
 public:
  struct Entry {
    std::size_t slot = 0;
    std::uint64_t generation = 0;  // of the slot, from 1
    std::uint64_t base = 0;
    std::uint64_t size_bytes = 0;  // 0: free
    node::MemoryHandle memory;     // of the allocation; length 0: it cannot be opened
  };

  // By the writer: where the next one goes; false: nowhere. All but its address is the caller's.
  bool next(Entry& free) const noexcept;
  void add(const Entry& entry) noexcept;
  // False: it is none of them.
  bool remove(const void* base) noexcept;

  bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  // Whether any of these addresses is in one of them.
  bool touch(std::span<const Piece> pieces) const noexcept;
  // The one that all of these are in.
  bool find(std::span<const Piece> pieces, Entry& entry) const noexcept;

 private:
  static constexpr std::size_t kMax = 128;
  using Word = std::atomic<std::uint64_t>;
  struct Slot {
    Word generation{0};
    Word base{0};
    Word size_bytes{0};
    Word memory[sizeof(node::MemoryHandle) / sizeof(std::uint64_t)];
  };
  Entry entry_at(std::size_t slot) const noexcept;
  template <class Look>
  bool look(Look look) const noexcept;

  Word version_{0};  // odd while it changes
  Word count_{0};
  Word used_{0};  // slots before this one have been taken
  Slot slots_[kMax];
};

// Zeros at first.
struct Words {
  std::atomic<std::uint32_t> update_holder{0};  // rank + 1
  // rank + 1 of an exclusive holder; above, how many share it.
  alignas(64) std::atomic<std::uint64_t> window_lock{0};
  alignas(64) DeviceRanges device_ranges;
};

// When whoever waits looks whether a peer still lives: by time, since a wait loop on a busy machine
// may come round only a hundred times a second.
class LifeChecks {
 public:
  bool is_due() noexcept {
    const Clock::time_point now = Clock::now();
    if (now < next_) return false;
    const bool is_first = next_ == Clock::time_point();
    next_ = now + kPause;
    return !is_first;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{10};
  Clock::time_point next_;
};

// By rank: null for those of which nothing is known, and for the own one. Those of ranks of other
// nodes the window's service cuts.
using LifeLines = std::vector<std::shared_ptr<const node::LifeLine>>;

// An error where that rank's process has ended: a peer that is waited for, or the holder of a lock.
Status check_peer(const LifeLines& lines, int rank);
Status check_life(const LifeLines& lines, int rank);

// One update: the lock is held while this lives.
class UpdateTurn {
 public:
  UpdateTurn() = default;
  ~UpdateTurn() {
    if (words_ != nullptr) words_->update_holder.store(0, std::memory_order_release);
  }
  UpdateTurn(const UpdateTurn&) = delete;
  UpdateTurn& operator=(const UpdateTurn&) = delete;
  Status take(Words& words, int own_rank, const LifeLines& lines);

 private:
  Words* words_ = nullptr;
};

bool try_lock(Words& words, LockKind kind, int own_rank) noexcept;
void unlock(Words& words, LockKind kind) noexcept;
// The rank that has it alone; -1: there is none.
int holder_of(const Words& words) noexcept;
// Why the lock will never be free; ok where it may be.
Status check_lock(const Words& words, const LifeLines& lines);

}  // namespace accord::rma
