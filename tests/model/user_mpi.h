// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI that a modelled program calls: the fake one itself (NativeMpi: the reference, host
// buffers only) or the fake one with Accord's core in front of it (model_shim.h). Buffers are the
// user's own.
#pragma once

#include <vector>

#include "fake_mpi.h"

namespace accord::model {

class UserMpi {
 public:
  using Send = FakeRank::Send;
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

class NativeMpi final : public UserMpi {
 public:
  explicit NativeMpi(FakeRank& host) : host_(host) {}

  Request isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override {
    return host_.isend(comm, dst, tag, buffer, mode);
  }
  Request irecv(Comm comm, int src, int tag, const Buffer& buffer) override {
    return host_.irecv(comm, src, tag, buffer);
  }
  Request send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override {
    return host_.send_init(comm, dst, tag, buffer, mode);
  }
  Request recv_init(Comm comm, int src, int tag, const Buffer& buffer) override {
    return host_.recv_init(comm, src, tag, buffer);
  }
  void send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) override {
    host_.send(comm, dst, tag, buffer, mode);
  }
  MessageStatus recv(Comm comm, int src, int tag, const Buffer& buffer) override {
    return host_.recv(comm, src, tag, buffer);
  }
  MessageStatus probe(Comm comm, int src, int tag) override { return host_.probe(comm, src, tag); }
  bool iprobe(Comm comm, int src, int tag, MessageStatus& status) override {
    return host_.iprobe(comm, src, tag, status);
  }
  void cancel(Request request) override { host_.cancel(request); }
  Request collective(Form form, Comm comm, const CollectiveArgs& args) override {
    return host_.collective(form, comm, args);
  }
  void start(Request request) override { host_.start(request); }
  void request_free(Request& request) override { host_.request_free(request); }
  bool test(Request& request, MessageStatus& status) override {
    return host_.test(request, &status);
  }
  void wait(Request& request, MessageStatus& status) override { host_.wait(request, &status); }
  void wait_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) override {
    host_.wait_all(requests, statuses);
  }
  int wait_any(std::vector<Request>& requests, MessageStatus& status) override {
    return host_.wait_any(requests, status);
  }
  std::vector<int> wait_some(std::vector<Request>& requests,
                             std::vector<MessageStatus>& statuses) override {
    return host_.wait_some(requests, statuses);
  }
  bool test_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) override {
    return host_.test_all(requests, statuses);
  }
  bool get_status(Request request, MessageStatus& status) override {
    return host_.peek(request, &status);
  }
  void finalize() override { host_.finalize(); }

 private:
  FakeRank& host_;
};

}  // namespace accord::model
