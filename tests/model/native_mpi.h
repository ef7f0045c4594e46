// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake MPI itself as a program's: the reference, host buffers only.
#pragma once

#include <vector>

#include "fake_mpi.h"
#include "user_mpi.h"

namespace accord::model {

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
