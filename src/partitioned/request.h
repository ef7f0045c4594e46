// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned request: an operation that is entered anew at each MPI_Start. The message is cut
// twice, into the partitions of either side, and into transfers, a number of the sender's
// partitions each, which move and arrive as a whole; all three are ranges of the packed bytes.
// What MPI_Pready and MPI_Parrived need is atomic, so that threads and kernels may mark
// partitions while others wait. What a driver may let wait for kernels (to open memory, to
// page-lock it) is done where the request is made or started, or prepared, and never while it is
// only waited for: those kernels may wait for it, unless no kernel has been given a request. Knows
// no mpi.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "accord/partitioned_layout.h"
#include "core/call_end.h"
#include "core/engine.h"
#include "core/requests.h"
#include "node/partition_board.h"
#include "node/shared_pages.h"
#include "partitioned/table.h"

namespace accord::partitioned {

class DevicePrequest;

// The round after one; they wrap, but for 0, which is of words that nobody has written yet.
constexpr std::uint32_t next_round(std::uint32_t round) noexcept {
  return round + 1 == 0 ? 1 : round + 1;
}
// Whether a round comes before another one: they are far fewer than half of all numbers apart.
constexpr bool is_before(std::uint32_t round, std::uint32_t other) noexcept {
  return static_cast<std::int32_t>(round - other) < 0;
}

// Who moves what a kernel marks ready.
enum class PartitionCopy { automatic, kernel, engine };

struct PartitionedCall {
  core::CallEnd end;
  Envelope envelope;
  std::int32_t partitions = 0;
  std::uint64_t partition_bytes = 0;
  std::int32_t peer_rank = 0;  // in the call's communicator, for the status
  // Of senders: as their info asks.
  std::int32_t transfer_partitions = 1;
  std::uint32_t marks = 1;
  PartitionCopy copy = PartitionCopy::automatic;
  // Collectives: kernels of the program may wait for partitions to arrive.
  bool kernels_wait = true;
};

class Partitioned : public core::Operation {
 public:
  ~Partitioned() override;

  std::uint32_t number() const noexcept { return number_; }

  // A round begins: before the operation is submitted.
  void renew();
  Phase advance(core::HostPort& host) override;
  // What went wrong in the round that has ended.
  Status outcome();

  // All of `low` to `high`, both included.
  virtual Status pready(std::int32_t low, std::int32_t high) = 0;
  virtual Status parrived(std::int32_t partition, bool& arrived) = 0;
  // This side has done what MPIX_Pbuf_prepare promises, for the round under way.
  bool prepared() const noexcept { return prepared_.load(std::memory_order_acquire) == round(); }
  bool started() const noexcept { return started_.load(std::memory_order_acquire); }
  // Steps may do what might wait for kernels; calls nest.
  void let_open(bool may) noexcept { may_open_.fetch_add(may ? 1 : -1); }

  // Bytes that have come, for the status; of a sender 0.
  virtual std::uint64_t received_bytes() const noexcept { return 0; }
  std::int32_t peer_rank() const noexcept { return call_.peer_rank; }
  std::int32_t tag() const noexcept { return call_.envelope.tag; }

  // Under the table's lock: the round under way ends with the first error.
  void fail_on_error(Status status) { keep_first(status_, std::move(status)); }
  // Under the table's lock: the other side has given up a round, which may not have begun here.
  void note_failure_of_peer(std::uint32_t round) { peer_failed_ = round; }

  Status create_prequest(accord_prequest*& prequest);
  void free_prequest();

 protected:
  Partitioned(PartitionedTable& table, PartitionedCall call);

  // Under the table's lock. `done`: this side is through with the round.
  virtual Status step(core::HostPort& host, bool& done) = 0;
  // After an error: nothing is under way any more.
  virtual bool drained(core::HostPort& host) = 0;
  virtual void begin_round() = 0;
  // That it has given up round `round`, where that is not the peer's own doing.
  virtual void tell_failure(std::uint32_t round) = 0;
  virtual void describe(accord_prequest& prequest) const = 0;
  virtual std::size_t transfers() const noexcept = 0;
  // For people: what it is, the way that the data of this round has gone, and what it is doing now.
  virtual const char* call_name() const = 0;
  virtual std::string path() const = 0;
  virtual stages::Stage stage() const = 0;

  Status make_words(std::size_t words);
  void begin_story();
  // Whether kernels reach them.
  bool words_are_pinned() const noexcept;
  std::atomic<std::uint32_t>& word(std::size_t number) const noexcept { return words_[number]; }
  std::uint32_t round() const noexcept { return round_.load(std::memory_order_acquire); }
  bool has_peer() const noexcept { return call_.envelope.process >= 0; }
  Status check_partition(std::int32_t low, std::int32_t high) const;
  // So that kernels reach what the two sides share, where there is that already. May wait for them.
  virtual Status pin_board() = 0;
  bool has_prequest() const noexcept { return has_prequest_.load(std::memory_order_relaxed); }
  // Lets kernels know what the two sides have found out about each other.
  void connect_prequest();
  // Whether a step may do what might wait for kernels. Under the table's lock.
  bool may_open() const noexcept {
    return may_open_.load(std::memory_order_relaxed) > 0 || !table_.has_prequests();
  }
  // In the call that starts a round: the program has yet to launch what marks its partitions.
  bool is_starting() const noexcept { return may_open_.load(std::memory_order_relaxed) > 0; }
  std::uint64_t own_bytes() const noexcept {
    return call_.partition_bytes * static_cast<std::uint64_t>(call_.partitions);
  }
  // Has at hand what a round takes, for a request that kernels have. May wait for them.
  virtual Status reserve() {
    keep_staging(own_bytes());
    return {};
  }
  // Has staging memory at hand for a few messages, where kernels may run meanwhile.
  void keep_staging(std::uint64_t longest_bytes) const;
  // Whether the other side has said, by a message or by its word on the board, that it has given up
  // the round under way, or a later one: then it is over here, too.
  bool given_up_by_peer(const node::PartitionBoard& board, node::PartitionBoard::End peer) const;
  bool given_up_by_peer() const { return is_of_now(peer_failed_); }
  // The host has marked a partition itself: kernels look closer at those of its line.
  void note_host_mark(std::int32_t partition) const noexcept;
  device::DeviceRuntime* runtime() const noexcept {
    return call_.end.on_device ? call_.end.runtime : nullptr;
  }
  std::byte* for_kernels(const void* pointer) const;

  PartitionedTable& table_;
  PartitionedCall call_;
  std::uint32_t number_ = 0;
  std::atomic<std::uint32_t> prepared_{0};  // the last round that was
  std::uint32_t gave_up_ = 0;               // the last round; 0: none

 private:
  // Whether a round that has failed is the one under way, or a later one.
  bool is_of_now(std::uint32_t failed) const;

  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> started_{false};
  mutable std::atomic<bool> host_marked_{false};  // a partition of this round
  // accord_partition_control, then what the side has asked for; where kernels can be, page-locked.
  node::PageSlot memory_of_words_;
  std::uint32_t peer_failed_ = 0;
  std::atomic<int> may_open_{0};
  accord_partition_control* control_ = nullptr;
  std::atomic<std::uint32_t>* words_ = nullptr;
  std::unique_ptr<DevicePrequest> prequest_;
  std::atomic<bool> has_prequest_{false};
  mutable std::uint64_t staged_for_bytes_ = 0;  // what staging has been kept for, once a request
};

// How the `Requests` table sees it.
class TrackedPartitions final : public core::Tracked {
 public:
  TrackedPartitions(core::Engine& engine, std::shared_ptr<Partitioned> request,
                    std::uint64_t context_bits);
  ~TrackedPartitions() override { engine_.let_go(*request_); }
  TrackedPartitions(const TrackedPartitions&) = delete;
  TrackedPartitions& operator=(const TrackedPartitions&) = delete;

  Status start() override;
  void started() override;
  Status finish(const core::Completion&) override;
  bool may_be_freed_active() const noexcept override { return false; }
  bool message(core::MessageInfo& info) const override;

  Partitioned& request() const noexcept { return *request_; }

 private:
  core::Engine& engine_;
  std::shared_ptr<Partitioned> request_;
  // While a round is under way, where the progress thread shall serve it between calls too.
  std::optional<core::Engine::BlockingRegion> meanwhile_;
};

// The user's request for one; tracked.
Status hold_partitioned(core::Engine& engine, core::Requests& requests,
                        std::shared_ptr<Partitioned> request, std::uint64_t context_bits,
                        core::HostRequest& held);

}  // namespace accord::partitioned
