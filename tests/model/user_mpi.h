// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI that a program calls: the fake one itself (native_mpi.h), the fake one with Accord's core
// in front of it (model_shim.h), or a real one. Buffers are the user's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"

namespace accord::model {

class UserMpi {
 public:
  using Send = SendMode;
  virtual ~UserMpi() = default;

  virtual Request isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) = 0;
  virtual Request irecv(Comm comm, int src, int tag, const Buffer& buffer) = 0;
  virtual Request send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) = 0;
  virtual Request recv_init(Comm comm, int src, int tag, const Buffer& buffer) = 0;
  virtual void send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) = 0;
  virtual MessageStatus recv(Comm comm, int src, int tag, const Buffer& buffer) = 0;
  virtual MessageStatus probe(Comm comm, int src, int tag) = 0;
  virtual bool iprobe(Comm comm, int src, int tag, MessageStatus& status) = 0;
  virtual void cancel(Request request) = 0;
  virtual Request collective(Form form, Comm comm, const CollectiveArgs& args) = 0;
  virtual void start(Request request) = 0;
  virtual void request_free(Request& request) = 0;
  virtual bool test(Request& request, MessageStatus& status) = 0;
  virtual void wait(Request& request, MessageStatus& status) = 0;
  virtual void wait_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) = 0;
  virtual int wait_any(std::vector<Request>& requests, MessageStatus& status) = 0;
  virtual std::vector<int> wait_some(std::vector<Request>& requests,
                                     std::vector<MessageStatus>& statuses) = 0;
  virtual bool test_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) = 0;
  virtual bool get_status(Request request, MessageStatus& status) = 0;
  virtual void finalize() = 0;
};

// What a run of a program has around it.
class RunHost {
 public:
  virtual ~RunHost() = default;
  virtual UserMpi& user(int rank) = 0;
  virtual void yield() = 0;           // a point at which another thread may go on
  virtual void event() noexcept = 0;  // something has changed
  virtual std::uint64_t random(std::uint64_t bound) = 0;
  // Whether a collective in place that has a result shorter than its buffer leaves the rest of it
  // as it was, and MPI_Exscan the buffer of rank 0.
  virtual bool keeps_rest() const { return true; }
  // Ends the run, and the calling thread's part in it; after the first one nothing more is said.
  virtual void fail(const std::string& message) = 0;
};

}  // namespace accord::model
