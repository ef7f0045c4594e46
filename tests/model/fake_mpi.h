// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A host MPI shared by the ranks of a modelled job, as unkind as the standard allows: it never
// progresses by itself (what a rank does becomes visible to others, and a completion to a rank,
// only after that rank has made some more calls), it delays and reorders, gives freed handles out
// again at once, scribbles over receive buffers before it fills them, refuses device pointers, and
// reports collectives that do not match: another kind, root, size or *form* (a blocking collective
// matches no non-blocking one). Knows nothing of Accord.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calls.h"
#include "scheduler.h"
#include "sight.h"

namespace accord::model {

class FakeRank;
struct Signature;

class FakeMpi {
 public:
  struct Options {
    int ranks = 2;
    // The reference: strong progress, no delays, and every call as synchronizing as the standard
    // allows.
    bool perfect = false;
    std::uint64_t delay_max = 4;
    bool synchronizing_init = false;  // *_init of collectives waits for all
    unsigned eager_percent = 50;      // standard sends that complete without their receiver
  };

  FakeMpi(Scheduler& scheduler, Options options);
  ~FakeMpi();
  FakeMpi(const FakeMpi&) = delete;
  FakeMpi& operator=(const FakeMpi&) = delete;

  FakeRank& rank(int world_rank) { return *ranks_[static_cast<std::size_t>(world_rank)]; }
  const std::vector<int>& members(Comm comm);

  // After all ranks have finalized: fails on anything left over.
  void check_clean();

 private:
  friend class FakeRank;
  struct Message;
  struct RequestState;
  struct Instance;
  struct PersistentGroup;
  struct CommInfo;

  std::uint64_t delay() { return options_.perfect ? 0 : scheduler_.random(options_.delay_max + 1); }
  CommInfo& comm_info(Comm comm, int world_rank);
  std::shared_ptr<Instance> new_instance(Comm comm, const Signature& signature,
                                         const CollectiveArgs& args);
  Comm create_comm(std::vector<int> members);
  void poke(FakeRank& caller);
  bool advance_instance(FakeRank& rank, Instance& instance);
  void complete_instance(FakeRank& rank, Instance& instance, std::size_t member);
  static bool depends_on(const Instance& instance, std::size_t me, std::size_t other);
  static std::vector<std::byte> reduced(const Instance& instance, std::size_t member);
  std::vector<std::byte> result_of(Instance& instance, std::size_t member);
  void create_children(Instance& instance);

  Scheduler& scheduler_;
  const Options options_;
  HiddenMutex mutex_;
  std::vector<std::unique_ptr<FakeRank>> ranks_;
  std::vector<std::unique_ptr<CommInfo>> comms_;
};

// One rank's face of the fake MPI. Source and destination are ranks of the communicator. The
// functions that block poll inside: whatever else the caller should be doing meanwhile does not get
// done.
class FakeRank {
 public:
  FakeRank(FakeMpi& mpi, int world_rank);
  ~FakeRank();
  FakeRank(const FakeRank&) = delete;
  FakeRank& operator=(const FakeRank&) = delete;

  int world_rank() const noexcept { return rank_; }
  int rank_in(Comm comm);
  int size_of(Comm comm);
  // Of this rank alone; made when it is first asked for.
  Comm own_comm();

  // What another thread of this rank does while one blocks here; called now and then.
  std::function<void()> background;

  using Send = SendMode;
  Request isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode);
  Request irecv(Comm comm, int src, int tag, const Buffer& buffer);
  Request send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode);
  Request recv_init(Comm comm, int src, int tag, const Buffer& buffer);
  void send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode);
  MessageStatus recv(Comm comm, int src, int tag, const Buffer& buffer);
  MessageStatus probe(Comm comm, int src, int tag);
  bool iprobe(Comm comm, int src, int tag, MessageStatus& status);
  void cancel(Request request);

  // persistent: an inactive request. blocking: kNoRequest, done.
  Request collective(Form form, Comm comm, const CollectiveArgs& args);

  void start(Request request);
  void request_free(Request& request);
  bool test(Request& request, MessageStatus* status = nullptr);
  bool peek(Request request, MessageStatus* status = nullptr);  // MPI_Request_get_status
  void wait(Request& request, MessageStatus* status = nullptr);
  // The array forms; `statuses` has one entry a request. Any: the index, or kUndefined when none is
  // active.
  void wait_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses);
  int wait_any(std::vector<Request>& requests, MessageStatus& status);
  std::vector<int> wait_some(std::vector<Request>& requests, std::vector<MessageStatus>& statuses);
  bool test_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses);
  bool test_any(std::vector<Request>& requests, int& index, MessageStatus& status);

  // The world rank whose request `handle` is.
  static std::size_t rank_of_handle(Request handle) {
    return static_cast<std::size_t>(handle >> 32) - 1;
  }

  // Some progress and nothing else, as a call that has nothing to do makes it.
  void progress();

  Request grequest_start();
  void grequest_complete(Request request);

  void finalize();
  // After a run: whether it got to its end, or has calls that others have yet to answer.
  bool has_ended() const noexcept { return finalized_; }
  bool waits_for_others() const;

 private:
  friend class FakeMpi;
  using State = FakeMpi::RequestState;
  using MessagePtr = std::shared_ptr<FakeMpi::Message>;

  // Every call: a point where others may run, then the lock, then perhaps some progress.
  HiddenLock enter(bool progresses);
  void block_until(const std::function<bool()>& done);
  bool process();  // everything that is due on this rank; true when something changed
  bool process_messages();
  void match(const MessagePtr& message, State& recv);
  void post_recv(State& state);
  void post_send(State& state, FakeRank::Send mode);
  std::shared_ptr<FakeMpi::Instance> join(Form form, Comm comm, const CollectiveArgs& args);
  void add(FakeMpi::Instance& instance, std::size_t member, const CollectiveArgs& args,
           State* request);
  void start_round(State& state);
  void require_host(const Buffer& buffer, const char* what);

  Request new_request(std::unique_ptr<State> state);
  State& state_of(Request request, const char* what);
  void release(Request request);
  bool is_active(Request request);
  bool is_complete(Request request);
  void consume(Request& request, MessageStatus* status);

  FakeMpi& mpi_;
  const int rank_;
  std::uint64_t pokes_ = 0;
  std::map<Request, std::unique_ptr<State>> requests_;
  std::vector<Request> free_handles_;
  Request handles_made_ = 0;
  std::list<MessagePtr> outgoing_;                             // not yet delivered
  std::list<MessagePtr> arriving_;                             // visible, not yet seen by this rank
  std::list<MessagePtr> unexpected_;                           // seen, no receive yet
  std::list<State*> posted_;                                   // receives, in order
  std::list<std::shared_ptr<FakeMpi::Instance>> collectives_;  // that this rank is in
  Comm own_comm_ = kNoComm;
  bool finalized_ = false;
};

}  // namespace accord::model
