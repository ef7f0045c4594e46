// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Finds ranks that make different calls where MPI wants the same one. Votes show it where all ranks
// vote; otherwise some rank waits for messages that never come: for chunks of a longer call, or for
// votes of ranks that are inside the host MPI. So each rank notes on a board of its node which call
// it is in, and one that waits for long compares. Between nodes only votes tell. Knows no mpi.h.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/agreement.h"
#include "node/call_board.h"

namespace accord::core {

// One a communicator. Not thread-safe, but for look() of calls that have been noted.
class CallWatch {
 public:
  // False once the boards are gone.
  static std::atomic<bool> has_boards;

  // `peers`: by rank, null where a rank is this one or on another node.
  void attach(std::uint64_t comm, node::CallBoard& own, std::vector<const node::CallBoard*> peers) {
    comm_ = comm;
    own_ = &own;
    peers_ = std::move(peers);
  }

  enum class By { host, us };
  // The next call; the number is 0 where nobody watches.
  node::CallEntry begin(const CallMark& mark, By by) noexcept {
    if (own_ == nullptr || !has_boards.load(std::memory_order_relaxed)) return {};
    const node::CallEntry entry{.comm = comm_,
                                .number = ++calls_,
                                .what = mark.what << 1 | (by == By::host ? 1 : 0),
                                .size_bytes = mark.size_bytes};
    own_->write(entry);
    return entry;
  }
  // The last call begins anew.
  void take_back() noexcept {
    if (own_ != nullptr && has_boards.load(std::memory_order_relaxed)) --calls_;
  }

  // How the calls of that number differ among the ranks of this node, once all have begun theirs.
  // Not ok: they are different calls. by_host: some are inside the host MPI, where the others have
  // to follow, since nothing else wakes them.
  struct Difference {
    Status status;
    bool by_host = false;

    bool any() const noexcept { return by_host || !status.ok(); }
  };
  Difference look(const node::CallEntry& mine) const;

  // From a difference on, all calls of this communicator go by the host MPI: what the ranks have
  // counted and begun together is no longer the same.
  bool is_broken() const noexcept { return broken_.load(std::memory_order_relaxed); }
  void break_up() noexcept { broken_.store(true, std::memory_order_relaxed); }

 private:
  std::uint64_t comm_ = 0;
  std::uint64_t calls_ = 0;
  std::atomic<bool> broken_{false};
  node::CallBoard* own_ = nullptr;
  std::vector<const node::CallBoard*> peers_;
};

// When a waiting call is to look. Costs a clock now and then.
class Patience {
 public:
  bool is_over() noexcept {
    if (++polls_ % kPollsPerLook != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (next_ == std::chrono::steady_clock::time_point()) next_ = now + limit();
    if (now < next_) return false;
    next_ = now + limit();
    return true;
  }

 private:
  static constexpr unsigned kPollsPerLook = 64;
  static std::chrono::milliseconds limit();
  unsigned polls_ = 0;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace accord::core
