// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A real MPI as that of a program: each call becomes one of those that come to the same (MPI_Recv
// or a matched probe, MPI_Wait or MPI_Waitsome of one, MPI_Gather or MPI_Gatherv), with datatypes
// made one way or another, attributes, operations and requests of the program's own among them.
#pragma once

#include <mpi.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "random.h"
#include "typed.h"
#include "user_mpi.h"

namespace accord::programs {

class RealMpi final : public model::UserMpi {
 public:
  using Buffer = model::Buffer;
  using Comm = model::Comm;
  using Request = model::Request;
  using Status = model::MessageStatus;

  // `world` is communicator 0. The same `seed` on all ranks.
  RealMpi(MPI_Comm world, std::uint64_t seed);

  Request isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override;
  Request irecv(Comm comm, int src, int tag, const Buffer& buffer) override;
  Request send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override;
  Request recv_init(Comm comm, int src, int tag, const Buffer& buffer) override;
  void send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override;
  Status recv(Comm comm, int src, int tag, const Buffer& buffer) override;
  Status probe(Comm comm, int src, int tag) override;
  bool iprobe(Comm comm, int src, int tag, Status& status) override;
  void cancel(Request request) override;
  Request collective(model::Form form, Comm comm, const model::CollectiveArgs& args) override;
  void start(Request request) override;
  void request_free(Request& request) override;
  bool test(Request& request, Status& status) override;
  void wait(Request& request, Status& status) override;
  void wait_all(std::vector<Request>& requests, std::vector<Status>& statuses) override;
  int wait_any(std::vector<Request>& requests, Status& status) override;
  std::vector<int> wait_some(std::vector<Request>& requests,
                             std::vector<Status>& statuses) override;
  bool test_all(std::vector<Request>& requests, std::vector<Status>& statuses) override;
  bool get_status(Request request, Status& status) override;
  void finalize() override {}

  // Frees a communicator of the program if that has not done so.
  void free_comm(Comm comm);
  // At the end: what is kept for requests goes. The program must have ended them all.
  void drop_requests();

 private:
  struct CommState {
    MPI_Comm handle = MPI_COMM_NULL;
    std::uint64_t salt = 0;         // the same on all its ranks
    std::uint64_t collectives = 0;  // that it has seen
  };
  // What a call reads until it has ended.
  struct Arrays {
    std::vector<int> send_counts, send_places, recv_counts, recv_places;
    std::vector<MPI_Datatype> send_types, recv_types;
  };
  struct State {
    MPI_Request handle = MPI_REQUEST_NULL;
    bool persistent = false;
    bool collective = false;
    Arrays arrays;
    std::shared_ptr<void> types;  // kept where the MPI does not keep them itself
  };
  class Mixed;

  MPI_Comm handle_of(Comm comm);
  CommState& comm_state(Comm comm);
  Comm add_comm(std::uint64_t salt);
  Request add(std::unique_ptr<State> state);
  State& state_of(Request request);
  void ended(Request& request);
  model::Random draw();  // a generator for one call
  static Status converted(const MPI_Status& status);
  bool may_test_all(const std::vector<Request>& requests);
  void make_comm(model::Form form, CommState& from, const model::CollectiveArgs& args,
                 MPI_Request* request);
  void call_collective(model::Form form, CommState& comm, const model::CollectiveArgs& args,
                       State& state, model::Random& shared);
  friend class CollectiveCall;

  std::mutex mutex_;
  model::Random random_;  // this rank's own
  std::deque<CommState> comms_;
  std::map<Request, std::unique_ptr<State>> requests_;
  Request last_request_ = model::kDoneRequest;
};

}  // namespace accord::programs
