// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective call that cannot be one host call at once: it waits behind others, carries a vote,
// or goes in chunks. A state machine polled by the engine: [vote -> [join]] -> whole | chunks |
// exchange -> done. Knows no mpi.h.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/ccl_group.h"
#include "core/collective.h"
#include "core/engine.h"
#include "core/inbox_exchange.h"
#include "core/meeting.h"
#include "core/node_exchange.h"
#include "core/pairwise_exchange.h"

namespace accord::core {

class CollectiveOperation final : public Operation {
 public:
  // Who makes the call where it turns out to be one call of the host MPI: the operation, by the
  // non-blocking form, or whoever waits for it, by the blocking one.
  enum class Whole { by_operation, by_waiter };

  CollectiveOperation(CollectiveCall call, std::optional<Turn> turn,
                      std::shared_ptr<CommQueue> queue, Whole whole);
  Phase advance(HostPort& port) override;
  const char* path() const noexcept { return path_; }
  // Once it is done without an error: the call, where its waiter is to make it.
  CollectiveCall* left_to_waiter() noexcept {
    return whole_by_ == Whole::by_waiter && stage_ == Stage::whole ? &call_ : nullptr;
  }

 private:
  enum class Stage { begin, voting, joining, whole, whole_in_host, chunks, exchange, stopping };

  // A chunk on its way: user memory -> shadow -> host MPI -> shadow -> user memory.
  struct Slot {
    enum class State { empty, copying_in, ready, in_host, copying_out };
    State state = State::empty;
    std::size_t chunk = 0;
    device::StagingBuffer shadow;
    device::CopyTicket ticket;
    HostRequest request = 0;
  };

  Phase stop(HostPort& port, Status status);
  Phase finish();
  Phase finish_exchange();
  Status begin();
  Status agree(HostPort& port, bool& pending);
  Status count_votes();
  bool meet();
  bool wants_library() const;
  CclGroup& ccl_group() const;
  bool goes_by_library() const;
  NodeGroup* group_to_join() const;
  Mode best_mode() const;
  Status decide();
  std::string why_best_mode() const;
  const char* why_no_device() const;
  Status start_as(Mode mode);
  Status open_ends(Mode mode);
  Status whole(HostPort& port, bool& pending);
  Status open_slots();
  Status move_slots(HostPort& port);
  Status move(Slot& slot, HostPort& port, bool& moved);
  Status fill(Slot& slot);
  Status issue(Slot& slot);
  Status drain(Slot& slot);
  void* chunk_pointer(const PipelineEnd& end, const Slot& slot) const;
  std::size_t chunk_first_bytes(std::size_t chunk) const;
  std::size_t chunk_length_bytes(std::size_t chunk) const;
  stages::Stage stage_of_chunks() const;

  CollectiveCall call_;
  std::optional<Turn> turn_;
  std::shared_ptr<CommQueue> queue_;
  const Whole whole_by_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Meeting> joining_;
  bool joins_ = true;  // until it turns out that it is too early
  Stage stage_ = Stage::begin;
  const char* path_ = "queued";
  Vote mine_;
  Vote all_;
  HostRequest request_ = 0;

  std::vector<Slot> slots_;
  std::size_t chunks_ = 0;
  std::size_t next_fill_ = 0;  // chunk to be copied in next
  std::size_t next_issue_ =
      0;  // chunk to be given to the host MPI next: the same order on every rank
  std::size_t finished_ = 0;
};

}  // namespace accord::core
