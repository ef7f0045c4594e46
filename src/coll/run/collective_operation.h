// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective call that cannot be one host call at once: it waits behind others, carries a vote,
// or goes in chunks. A state machine polled by the engine: [vote -> [join] -> agree] -> whole |
// chunks | exchange -> done. Of a persistent call it ends once the way is decided, and each start
// makes the exchange. Knows no mpi.h.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "coll/exchange.h"
#include "coll/run/bootstrap.h"
#include "coll/run/collective.h"
#include "core/engine.h"
#include "core/meeting.h"

namespace accord::coll {

class CollectiveOperation final : public core::Operation {
 public:
  // The form of the call is that of the host MPI's, where it turns out to be one call of it: the
  // operation makes it where that is the non-blocking one, else whoever waits for it.
  enum class Form { blocking, nonblocking, persistent };

  // `queue`: the groups that it goes by. `comm`: whose ranks vote; the same, or null, but for
  // persistent ones.
  CollectiveOperation(CollectiveCall call, std::optional<core::Turn> turn,
                      std::shared_ptr<core::CommQueue> queue, Form form,
                      std::shared_ptr<core::CommQueue> comm = nullptr);
  Phase advance(core::HostPort& port) override;
  void tell() noexcept override {
    if (std::exchange(is_untold_, false)) comm_->watch.tell();
  }
  void abandon() noexcept override;
  const char* path() const noexcept { return path_; }
  // Once it is done without an error: the call, where its waiter is to make it.
  CollectiveCall* left_to_waiter() noexcept {
    return form_ != Form::nonblocking && stage_ == Stage::whole ? &call_ : nullptr;
  }
  // The ranks made different calls: for whoever makes this one by the host MPI after all.
  const Status& difference() const noexcept { return difference_.status; }
  // Before a persistent one, which is done with what it did before, is submitted again.
  void renew();

 private:
  enum class Stage {
    begin,
    voting,
    joining,
    agreeing,  // whether the vote has ended on all ranks of the node
    decided,
    whole,
    whole_in_host,
    chunks,
    exchange,
    stopping
  };

  // A chunk on its way: user memory -> shadow -> host MPI -> shadow -> user memory.
  struct Slot {
    enum class State { empty, copying_in, ready, in_host, copying_out };
    State state = State::empty;
    std::size_t chunk = 0;
    device::StagingBuffer shadow;
    device::CopyTicket ticket;
    core::HostRequest request = 0;
  };

  Phase stop(core::HostPort& port, Status status);
  bool waits_for_peers() const noexcept;
  bool is_in_vain() const;
  bool has_parted();
  bool owes_host_calls() const noexcept;
  void lag_behind() noexcept;
  Phase follow(core::HostPort& port);
  Phase finish();
  Status copy_out_arrived();
  Phase finish_exchange();
  Status begin();
  Status agree(core::HostPort& port, bool& pending);
  Status count_votes();
  void keep_long_pairs();
  std::uint64_t calls_to_next_vote() const;
  Status decide();
  Status proceed();
  const char* path_of(const Algorithm& algorithm) const;
  Status start_as(const Algorithm& algorithm);
  Status open_ends(const Algorithm& algorithm);
  Status whole(core::HostPort& port, bool& pending);
  Status open_slots();
  Status move_slots(core::HostPort& port);
  Status move(Slot& slot, core::HostPort& port, bool& moved);
  Status fill(Slot& slot);
  Status issue(Slot& slot);
  void give_up(Slot& slot, Status status);
  Status drain(Slot& slot);
  void* chunk_pointer(const core::CallEnd& end, const Slot& slot) const;
  std::size_t chunk_first_bytes(std::size_t chunk) const;
  std::size_t chunk_length_bytes(std::size_t chunk) const;
  stages::Stage stage_of_chunks() const;

  CollectiveCall call_;
  std::optional<core::Turn> turn_;
  std::shared_ptr<core::CommQueue> queue_;
  std::shared_ptr<core::CommQueue> comm_;
  std::uint64_t vote_ = 0;
  bool is_untold_ = false;  // see CallWatch::expect_telling
  const Form form_;
  std::unique_ptr<Exchange> exchange_;
  std::optional<Bootstrap> bootstrap_;  // of a call that votes
  std::unique_ptr<core::Meeting> joining_;
  Stage stage_ = Stage::begin;
  const char* path_ = "queued";
  core::Patience patience_;
  core::CallWatch::Difference difference_;
  bool follows_ = false;  // those that are inside the host MPI
  core::Vote mine_;
  core::Vote all_;
  core::HostRequest request_ = 0;

  std::vector<Slot> slots_;
  std::size_t chunks_ = 0;
  std::size_t next_fill_ = 0;  // chunk to be copied in next
  std::size_t next_issue_ =
      0;  // chunk to be given to the host MPI next: the same order on every rank
  std::size_t finished_ = 0;
};

}  // namespace accord::coll
