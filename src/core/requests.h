// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What must happen around a host request that a user holds: before a persistent one starts, after
// any one completes. The user's handle is always a real request of the host MPI (its own, or a
// generalized one), so every MPI call accepts it; this table only remembers the work that goes with
// it. A program without device traffic pays one load to learn that the table is empty. Knows no
// mpi.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/call_site.h"
#include "core/engine.h"
#include "core/host_port.h"
#include "core/staged_buffer.h"

namespace accord::p2p {
class SharedBatch;
}

namespace accord::core {

// What the status of a request shall say of the message, where the host MPI's request does not
// know.
struct MessageInfo {
  int source = 0;
  int tag = 0;
  std::uint64_t received_bytes = 0;
  bool has_origin = true;  // else the host MPI knows source and tag
  bool is_cancelled = false;
};

class Tracked {
 public:
  virtual ~Tracked() = default;
  // A persistent request is about to start: brings the bytes it reads.
  virtual Status start() { return {}; }
  // The host MPI has started it.
  virtual void started() {}
  // The request has completed: puts the received bytes where the user wants them.
  virtual Status finish(const Completion& completion) = 0;
  // The user asks whether the request is complete.
  virtual void wanted() {}
  // Whether what has come for it may be brought before the user asks for its completion; looks
  // whether something has, and brings that into a batch that is begun afterwards.
  virtual bool may_fetch_early() const noexcept { return false; }
  virtual void fetch_early(HostRequest /*request*/,
                           const std::shared_ptr<p2p::SharedBatch>& /*batch*/) {}
  // The user only asks for its completion: begins to bring what has come for it and would take
  // long, so that the call need not wait. From then on it is being fetched.
  virtual void begin_fetch(HostRequest /*request*/) {}
  // Whether what has come for it may be copied out together with others.
  virtual bool copies_out() const noexcept { return false; }
  // Whether it is known not to be complete, and nothing that a look at it could do would end it.
  virtual bool is_pending() const noexcept { return false; }
  // Whether it has yet to arrive.
  virtual bool is_being_fetched() { return false; }
  // Whether it may stay unfinished for now: the call that waits for it waits for others, too, so
  // its end helps nobody. False: it is none that somebody would have to do more for if it ended
  // sooner.
  virtual bool may_stay(bool /*may*/) { return false; }
  // Whether it is to be completed before those behind it in an array that say so, too.
  virtual bool keeps_order() const noexcept { return false; }
  // The user wants it cancelled. False: that is the host MPI's business, as the request is.
  virtual bool cancel() { return false; }
  // Of an `early` one: whether it is complete.
  virtual bool early_is_through() { return true; }
  // Whether the user may free the request while it is active.
  virtual bool may_be_freed_active() const noexcept { return true; }
  virtual bool message(MessageInfo& info) const {
    if (facts) info = *facts;
    return facts.has_value();
  }

  // A call that brings what comes for it itself waits for it.
  std::atomic<bool> is_waited_for{false};
  // The shim's: bits of the communicator that errors are raised on. Changes when that is freed.
  std::atomic<std::uint64_t> context{0};
  CallSite site;  // of the call that made it
  bool persistent = false;
  bool claimed = false;       // some thread is about to complete it; under the lock of Requests
  bool is_looked_at = false;  // for a moment only; the same
  bool active = true;  // false for a persistent request between its completion and its next start
  bool finished = false;  // though the user has the request still, and has only asked about it
  // A persistent receive whose message was held when it was started, so that another request of the
  // host MPI brings it: for the user's own one there was no start.
  bool early = false;
  // A persistent one whose completion has been told by a call that only asks for it, and which its
  // user has yet to complete: MPICH takes it for inactive then.
  bool is_told = false;
  std::optional<MessageInfo> facts;  // what message() tells, once it is finished
};

class Requests {
 public:
  bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

  void track(HostRequest request, std::shared_ptr<Tracked> work);

  // The work that goes with `request`, if any. A completed handle is free before finish() is
  // reached, and another thread may get it for a new request meanwhile. So whoever lets the host
  // MPI complete a request claims its work first, until finish() or unclaim(); claimed work is
  // nobody else's, for MPI lets only one thread at a time complete a request.
  std::shared_ptr<Tracked> find(HostRequest request);
  std::shared_ptr<Tracked> claim(HostRequest request);
  void unclaim(const std::shared_ptr<Tracked>& work);
  // Also what another thread is about to complete: of a persistent request, whose handle stays.
  std::shared_ptr<Tracked> look(HostRequest request);

  // Looks at each active request that may_fetch_early and is not waited for; nobody completes it
  // meanwhile.
  template <class Look>
  void look_at_each(Look&& look) {
    const Looks looks(*this);
    for (const auto& [request, work] : looks.all) look(request, *work);
  }

  // Before the host MPI starts a persistent request. No effect on one that is not tracked.
  Status start(HostRequest request);
  // After it has.
  void started(HostRequest request);

  // After the host MPI said that `request` is complete (`work` as found before, since the handle is
  // gone, unless the user has only asked about it). Does nothing for one already finished.
  enum class Ended { completed, kept };
  Status finish(HostRequest request, const std::shared_ptr<Tracked>& work,
                const Completion& completion, Ended ended = Ended::completed);

  // Whether there is work of this context, and the one that it shall have from now on.
  bool any_in(std::uint64_t context);
  void change_context(std::uint64_t from, std::uint64_t to);

  // Forgets a request the user frees while it is inactive.
  void forget(HostRequest request);

 private:
  // Nobody else has them meanwhile.
  struct Looks {
    explicit Looks(Requests& requests);
    ~Looks();
    Looks(const Looks&) = delete;
    Looks& operator=(const Looks&) = delete;

    Requests& requests;
    std::vector<std::pair<HostRequest, std::shared_ptr<Tracked>>> all;
  };
  // The work of a request that nobody has claimed, under the lock; null: there is none.
  std::shared_ptr<Tracked> unclaimed(HostRequest request, std::unique_lock<std::mutex>& locked);

  std::mutex mutex_;
  std::unordered_map<HostRequest, std::shared_ptr<Tracked>> table_;
  std::atomic<std::size_t> count_{0};
};

// An active request that its user has freed: polls it to its end and finishes it, since nobody else
// will. `release` frees a persistent handle in the host MPI.
class OrphanOperation final : public Operation {
 public:
  OrphanOperation(HostRequest request, std::shared_ptr<Tracked> work, void (*release)(HostRequest))
      : request_(request), work_(std::move(work)), release_(release) {}
  Phase advance(HostPort& port) override;

 private:
  HostRequest request_;
  std::shared_ptr<Tracked> work_;
  void (*release_)(HostRequest);
};

}  // namespace accord::core
