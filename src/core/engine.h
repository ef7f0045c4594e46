// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Order and progress. An Operation is a call of ours that takes several steps; the engine polls all
// active ones as independent state machines, never in order, and never waits for a peer while it
// holds its lock. A communicator's queue keeps the order in which the host MPI matches calls: an
// operation that has yet to issue something holds back every later collective of its communicator.
//
// Order: nothing the host MPI matches is issued later than, or in another order than, the user's
// calls. Form: MPI does not match a blocking collective with a non-blocking one, so the form of a
// host call follows from nothing that one rank alone knows. A blocking collective that is one host
// call is the host's blocking form on all ranks, also where a vote has just said so.
//
// Progress: while any operation is active, point-to-point calls, probes and waits run in their
// non-blocking form, with a progress loop; other calls run in a BlockingRegion, served by a thread.
// That takes MPI_THREAD_MULTIPLE on all ranks. Without it no operation outlives its call, but for
// partitioned ones.
//
// Knows no mpi.h.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/stages.h"
#include "base/status.h"
#include "core/agreement.h"
#include "core/call_watch.h"
#include "core/host_port.h"
#include "core/team.h"

namespace accord::core {

struct CommQueue;

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  // queued: something is still to be issued to the host MPI; issued: later calls of the
  // communicator may go; done: `status` holds the outcome.
  enum class Phase { queued, issued, done };

  virtual ~Operation() = default;

  // Goes on as far as is possible without waiting and says how far that was. Called under the
  // engine's lock, and only once every earlier operation of the queue has issued all its host
  // calls. What it throws, as an error handler of the program does, has ended the operation.
  virtual Phase advance(HostPort& port) = 0;
  // The program learns its outcome.
  virtual void tell() noexcept {}
  // What it was about to do when it threw is left undone.
  virtual void abandon() noexcept {}

  Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  // The outcome; valid once phase() is done.
  const Status& status() const noexcept { return status_; }

 protected:
  Status status_;
  stages::Story story_;  // of the call it carries out
  // Active for as long as what it serves, and nothing is under way on a device between its steps.
  // The progress thread advances it now and then while the program is in no MPI call.
  bool is_standing_ = false;

 private:
  friend class Engine;
  std::atomic<Phase> phase_{Phase::queued};
  std::shared_ptr<CommQueue> queue_;
  HostRequest request_ = 0;
  bool has_request_ = false;
  bool is_awaited_ = true;
  static constexpr int kNoPlaceholder = -1;
  int placeholder_ = kNoPlaceholder;
};

// One per communicator; lives as long as the communicator or any operation of it.
struct CommQueue {
  std::deque<Operation*> waiting;  // operations that have yet to issue something, oldest first
  ModeTable modes;
  CallWatch watch;
  Status difference;  // for the call that begins anew to tell
  // The last call, which this rank has counted, where it has failed here alone before the host MPI
  // got it, which has that of the others: the program may make it again.
  std::optional<CallMark> owed;
  Team team;
  unsigned short_calls = 0;  // blocking ones of one step
  // Whether its memory may go since nobody calls (Engine::rest).
  bool is_known = false;         // to the engine
  std::uint64_t calls_seen = 0;  // and since when there have been no more:
  std::chrono::steady_clock::time_point seen_at{};
};

class Engine {
 public:
  explicit Engine(HostPort& port) : port_(port) {}
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  HostPort& port() noexcept { return port_; }

  // True while no operation is active: the caller may block inside the host MPI.
  bool idle() const noexcept { return active_count_.load() == 0; }

  // Enters `operation`, behind those of `queue` if there is one, and moves it on at once if it may.
  // One that is done may be entered again.
  void submit(std::shared_ptr<Operation> operation, std::shared_ptr<CommQueue> queue);
  // One of many at once: the next pass moves it on, with the others.
  void add(std::shared_ptr<Operation> operation);

  // Gives the user a real request that completes with the operation, which is entered later.
  Status promise(Operation& operation, HostRequest& request);
  // Both at once.
  Status submit(std::shared_ptr<Operation> operation, std::shared_ptr<CommQueue> queue,
                HostRequest& request);

  // Gives the user a persistent request for an operation that is done: each start of it has to
  // submit the operation, and completes with it. Until let_go, when it is not to be submitted any
  // more.
  Status hold(Operation& operation, HostRequest& request) {
    operation.queue_.reset();  // it need not live as long as the request
    return port_.placeholder_init(request, operation.placeholder_);
  }
  void let_go(Operation& operation) { port_.placeholder_release(operation.placeholder_); }

  // Enters an operation that nobody waits for: moved on with the others, but for as long as nothing
  // else is active the caller may block inside the host MPI.
  void submit_unawaited(std::shared_ptr<Operation> operation);

  // Whether the calling thread is in an operation's step: then nobody may wait for another.
  static bool is_in_step() noexcept;

  // One pass over all active operations. Returns at once when another thread is at it. Throws what
  // an operation has thrown, once the pass is over.
  void progress();

  // While a thread calls progress again and again: counted where others may see it.
  class Waiting {
   public:
    explicit Waiting(Engine& engine) noexcept : engine_(engine), count_(*engine.waits_.load()) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Waiting() { count_.fetch_sub(1, std::memory_order_relaxed); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    // For a call that must be brought to its end whatever error handlers throw for other
    // operations: that is kept.
    void progress() noexcept;
    // Once it has ended: throws what has been kept.
    void end() const;

   private:
    Engine& engine_;
    std::atomic<std::uint32_t>& count_;
    std::exception_ptr thrown_;  // the first one
  };
  bool is_waited_for() const noexcept {
    return waits_.load()->load(std::memory_order_relaxed) != 0;
  }
  // From now on there; null: nobody sees it.
  void count_waits_in(std::atomic<std::uint32_t>* count) noexcept {
    waits_.store(count != nullptr ? count : &unseen_waits_);
  }

  // Progresses until done() is true; done() may poke the host MPI. What operations have thrown is
  // thrown then.
  template <class Done>
  void wait_until(Done&& done) {
    Waiting waiting(*this);
    for (waiting.progress(); !done(); waiting.progress()) port_.pause();
    waiting.end();
  }

  void wait(const Operation& operation) {
    wait_until([&] { return operation.phase() == Operation::Phase::done; });
  }

  // Whether any earlier collective of `queue` has still something to issue.
  bool busy(const CommQueue& queue);

  // This call's vote or the vote that decides it; to be called once per call, in the order of the
  // calls.
  Turn next_turn(CommQueue& queue, const Key& key,
                 ModeTable::Before before = ModeTable::Before::under_way);

  // Around every blocking call into the host MPI. With threads allowed, a progress thread works
  // while any operation is active (else this costs two atomic additions). Without, no operation can
  // be active here that a peer waits for: see start_collective.
  class BlockingRegion {
   public:
    explicit BlockingRegion(Engine& engine) : engine_(engine) { engine_.enter_blocking(); }
    ~BlockingRegion() { engine_.leave_blocking(); }
    BlockingRegion(const BlockingRegion&) = delete;
    BlockingRegion& operator=(const BlockingRegion&) = delete;

   private:
    Engine& engine_;
  };

  // Whether any thread is inside a BlockingRegion.
  bool in_blocking_call() const noexcept { return blocked_.load() > 0; }

  // The host MPI may be called from several threads at once. Set once, right after its
  // initialisation, to the same value on every rank of the job: it decides which form of a
  // collective is issued, and the forms do not match each other.
  void allow_threads(bool allowed) noexcept { threads_allowed_ = allowed; }
  bool threads_allowed() const noexcept { return threads_allowed_; }

  // Communicators that nobody uses for a while give their device memory back. Not where several
  // threads of the program may make calls. Set once.
  void allow_rest(bool allowed) noexcept { rest_allowed_ = allowed; }

  // Stops the progress thread; before the host MPI is finalized.
  void stop_thread();

 private:
  void enter(std::shared_ptr<Operation> operation, std::shared_ptr<CommQueue> queue);
  void advance(Operation& operation);
  Operation::Phase step(Operation& operation);
  // But for what stands.
  bool has_nothing_under_way() const noexcept {
    return active_count_.load() == standing_count_.load() && unawaited_count_.load() == 0;
  }
  void look_around();
  void rest();
  void rest(CommQueue& queue, std::chrono::steady_clock::time_point now);
  void enter_blocking();
  void leave_blocking() noexcept;
  void wake_thread();
  void run_thread();

  HostPort& port_;
  std::recursive_mutex mutex_;
  std::atomic<int> waiting_{0};  // threads that are about to take it for a moment
  bool in_progress_ = false;     // a callback of the host MPI may call back into us
  std::exception_ptr thrown_;    // by the first operation of this pass that has
  std::vector<std::shared_ptr<Operation>> active_;
  std::atomic<std::size_t> active_count_{0};
  std::atomic<std::size_t> standing_count_{0};   // of these
  std::atomic<std::size_t> unawaited_count_{0};  // not among these

  std::atomic<std::uint32_t> unseen_waits_{0};
  std::atomic<std::atomic<std::uint32_t>*> waits_{&unseen_waits_};
  std::vector<std::weak_ptr<CommQueue>> queues_;  // that may have memory
  std::atomic<bool> has_queues_{false};
  bool rest_allowed_ = false;
  std::chrono::steady_clock::time_point next_rest_{};

  bool threads_allowed_ = false;
  std::atomic<std::size_t> blocked_{0};  // threads inside blocking host calls
  std::mutex thread_mutex_;
  std::condition_variable thread_wake_;
  std::thread thread_;
  bool thread_stop_ = false;
};

}  // namespace accord::core
