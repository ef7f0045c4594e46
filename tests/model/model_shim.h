// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Accord's core over the fake MPI, call by call as src/shim does it over a real one; keep the two
// alike. A Mutation makes one deliberate mistake, to show that the model test would find it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "coll/run/collective.h"
#include "core/engine.h"
#include "core/requests.h"
#include "exchange_options.h"
#include "failing.h"
#include "fake_mpi.h"
#include "mutation.h"
#include "user_mpi.h"

namespace accord::model {

struct ShimOptions {
  bool threads_allowed = true;
  std::size_t pipeline_bytes = 64;
  std::size_t chunk_bytes = 32;
  ExchangeOptions exchange{};
  Mutation mutation = Mutation::none;
};

// The host MPI as the core sees it. The modelled threads stand in for the engine's own in baton
// mode.
class ModelPort final : public core::HostPort {
 public:
  ModelPort(Scheduler& scheduler, FakeRank& host) : scheduler_(scheduler), host_(host) {}
  Status test(core::HostRequest& request, bool& done) override;
  Status test_message(core::HostRequest& request, bool& done,
                      core::Completion& completion) override;
  Status peek(core::HostRequest request, bool& done) override;
  Status grequest_start(core::HostRequest& request) override;
  void grequest_complete(core::HostRequest request) override;
  Status placeholder_init(core::HostRequest& request, int& number) override;
  void placeholder_complete(int number) override;
  void placeholder_release(int number) override;
  void poke() override {
    if (!active(Mutation::no_poke)) host_.progress();
  }
  void pause() override { scheduler_.yield(); }
  bool progress_elsewhere() override;
  void lock(std::recursive_mutex& mutex) override;

  // One turn of the thread that the engine has been promised: awake since the engine asked for it,
  // asleep again once there is nothing to do.
  void background(core::Engine& engine);

 private:
  Scheduler& scheduler_;
  FakeRank& host_;
  std::atomic<bool> awake_{false};
  std::mutex placeholders_mutex_;
  int placeholders_ = 0;  // numbers in use or free
  std::vector<int> free_placeholders_;
};

class ModelShim final : public UserMpi {
 public:
  ModelShim(Scheduler& scheduler, FakeRank& host, const ShimOptions& options);
  ~ModelShim() override;

  core::Engine& engine() noexcept { return engine_; }
  core::Requests& requests() noexcept { return requests_; }
  FakeRank& host() noexcept { return host_; }

  Request isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override;
  Request irecv(Comm comm, int src, int tag, const Buffer& buffer) override;
  Request send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override;
  Request recv_init(Comm comm, int src, int tag, const Buffer& buffer) override;
  void send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override;
  MessageStatus recv(Comm comm, int src, int tag, const Buffer& buffer) override;
  MessageStatus probe(Comm comm, int src, int tag) override;
  bool iprobe(Comm comm, int src, int tag, MessageStatus& status) override;
  void cancel(Request request) override;
  Request collective(Form form, Comm comm, const CollectiveArgs& args) override;
  void start(Request request) override;
  void request_free(Request& request) override;
  bool test(Request& request, MessageStatus& status) override;
  void wait(Request& request, MessageStatus& status) override;
  void wait_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) override;
  int wait_any(std::vector<Request>& requests, MessageStatus& status) override;
  std::vector<int> wait_some(std::vector<Request>& requests,
                             std::vector<MessageStatus>& statuses) override;
  bool test_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) override;
  bool get_status(Request request, MessageStatus& status) override;
  void finalize() override;

  // Keeps the error instead of failing the run: for tests of errors.
  bool keep_errors = false;
  // From then on an error ends the program of this rank.
  void set_failure(const Failing& failure);
  // The ranks have boards, by their rank in the world, as those of a node have.
  void watch_calls(std::vector<node::CallBoard>& boards, FakeMpi& mpi);
  Status last_error;

 private:
  struct Watched {
    std::size_t index;
    core::HostRequest handle;
    std::shared_ptr<core::Tracked> work;
  };

  void check(const Status& status);
  int host_code();  // of the next call of the host MPI: 0 or an error
  std::shared_ptr<core::CommQueue> queue_of(Comm comm);
  void attach(core::CallWatch& watch, Comm comm);
  void drain(Comm comm);
  coll::CollectiveCall describe(Form form, Comm comm, const CollectiveArgs& args);
  std::optional<coll::CollArgs> coll_args(Comm comm, const CollectiveArgs& args,
                                          const coll::CollectiveCall& call);
  core::CallEnd call_end(const Buffer& buffer, const coll::CollectiveCall& call, bool of_send);
  void add_exchange(coll::CollArgs& made, Comm comm, const CollectiveArgs& args);
  void go_by_pairs(coll::CollArgs& made, const CollectiveArgs& args);
  void add_chunks(coll::CollArgs& made, Comm comm, const CollectiveArgs& args);
  void end_queue(Comm comm);
  Request hand_over(Request request, core::StagedBuffer send, core::StagedBuffer recv);
  Request hand_over_persistent(Request request, core::StagedBuffer send, core::StagedBuffer recv);
  Request run_mutated(Form form, Comm comm, coll::CollectiveCall call);
  std::vector<Watched> watch(const std::vector<Request>& requests);
  void unwatch(const std::vector<Watched>& watched);
  void settle(const Watched& one, const MessageStatus& status);
  template <class Native, class Poll>
  void complete(Native native, Poll poll);
  bool is(Mutation mutation) const noexcept { return options_.mutation == mutation; }

  Scheduler& scheduler_;
  FakeRank& host_;
  std::vector<node::CallBoard>* boards_ = nullptr;
  FakeMpi* mpi_ = nullptr;
  Failing failure_;
  std::atomic<long> host_calls_left_{-1};
  const ShimOptions options_;
  ModelPort port_;
  core::Requests requests_;
  std::mutex queues_mutex_;
  std::map<Comm, std::shared_ptr<core::CommQueue>> queues_;
  // latest_mode: what this rank has heard, by communicator and key.
  std::map<std::pair<Comm, std::uint64_t>, std::vector<std::shared_ptr<core::VoteResult>>> latest_;
  core::Engine engine_;
};

}  // namespace accord::model
