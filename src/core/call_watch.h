// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Finds ranks that make different calls where MPI wants the same one. Votes show it where all ranks
// vote; otherwise some rank waits for messages that never come: for chunks of a longer call, or for
// votes of ranks that are inside the host MPI. So each rank notes on a board of its node which call
// it is in, and one that waits for long compares. Between nodes only votes tell.
//
// Also finds ranks that have left: a host call failed there before the ranks had agreed on a way,
// or before all was issued that the host MPI matches with its peers'. Such a rank cannot know what
// the peers have made of the call. So no rank goes on behind a vote before all ranks of its node
// have said that it came to a good end at theirs, and one that waits for long looks whether some
// have left. From then on all calls of the communicator are errors on these ranks: the host MPI
// would match them with others. Ranks of other nodes are not told: they may wait in the host MPI
// for good. Knows no mpi.h.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/agreement.h"
#include "node/call_board.h"

namespace accord::core {

// One a communicator. Not thread-safe, but for look() of calls that have been noted, and what asks
// whether a rank has left.
class CallWatch {
 public:
  CallWatch() = default;
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // False once the boards are gone.
  static std::atomic<bool> has_boards;

  // `peers`: by rank, null where a rank is this one or on another node. `is_gone`: whether the
  // process of such a rank has ended.
  void attach(std::uint64_t comm, node::CallBoard& own, std::vector<const node::CallBoard*> peers,
              std::function<bool(std::size_t rank)> is_gone) {
    comm_ = comm;
    own_ = &own;
    peers_ = std::move(peers);
    is_gone_ = std::move(is_gone);
  }

  enum class By { host, us };
  // The next call; the number is 0 where nobody watches.
  node::CallEntry begin(const CallMark& mark, By by) noexcept {
    if (!is_watched()) return {};
    const node::CallEntry entry{.comm = comm_,
                                .number = ++calls_,
                                .what = mark.what << 1 | (by == By::host ? 1 : 0),
                                .size_bytes = mark.size_bytes};
    own_->write(entry);
    return entry;
  }
  // The last call begins anew.
  void take_back() noexcept {
    if (is_watched()) --calls_;
  }

  // How the calls of that number differ among the ranks of this node, once all have begun theirs.
  // Not ok: they are different calls. by_host: some are inside the host MPI, where the others have
  // to follow, since nothing else wakes them. has_left: a rank has no part in the call any more.
  struct Difference {
    Status status;
    bool by_host = false;
    bool has_left = false;

    bool any() const noexcept { return by_host || !status.ok(); }
  };
  Difference look(const node::CallEntry& mine) const;

  // From a difference on, all calls of this communicator go by the host MPI: what the ranks have
  // counted and begun together is no longer the same.
  bool is_broken() const noexcept { return broken_.load(std::memory_order_relaxed); }
  void break_up() noexcept { broken_.store(true, std::memory_order_relaxed); }

  // The next vote, before it is issued: the number is 0 where nobody watches. In the order of the
  // calls.
  std::uint64_t begin_vote() noexcept;
  // It has come to its end here, and what it has led to is known.
  void end_vote(std::uint64_t vote) noexcept;
  // Whether it has on all ranks of the node; an error where one has left. `looks`: also for ranks
  // that are gone, for whom nobody waits here.
  Status is_ended(std::uint64_t vote, bool looks, bool& ended) const;

  // From `call` on this rank has no part in calls of this communicator.
  void leave(const node::CallEntry& call) noexcept;
  bool has_left() const noexcept { return left_.load(std::memory_order_relaxed); }
  // A call that the host MPI has refused to begin, or that was made behind such a one: until the
  // program has been told of all of them it has a part in no other. Then it knows as much as if the
  // host MPI had told it at once.
  void expect_telling() noexcept;
  void tell() noexcept { --untold_; }
  // Whether calls are refused, by which error.
  bool refuses() const noexcept {
    return has_left() || untold_.load(std::memory_order_relaxed) != 0;
  }
  // Any communicator of this process has, so that the others cost one look.
  static bool anyone_refuses() noexcept { return anyone_refused.load(std::memory_order_relaxed); }
  Status refusal() const;

 private:
  Status left_by_peer(const node::CallEntry& mine) const;
  bool is_watched() const noexcept {
    return own_ != nullptr && has_boards.load(std::memory_order_relaxed);
  }

  static std::atomic<bool> anyone_refused;

  std::uint64_t comm_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t votes_ = 0;
  std::atomic<bool> broken_{false};
  std::atomic<bool> left_{false};
  std::atomic<int> untold_{0};
  node::CallBoard* own_ = nullptr;
  node::VoteLine* own_line_ = nullptr;
  std::vector<const node::CallBoard*> peers_;
  std::function<bool(std::size_t rank)> is_gone_;
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
