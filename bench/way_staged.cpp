// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a careful user writes by hand where MPI knows no accelerator: copy to host memory that is
// kept, call MPI on it, copy back. Only what this rank really sends or receives is copied; where
// several messages are in flight, each by itself. MPI is called past Accord.
#include <fmt/format.h>

#include <stdexcept>

#include "bench/buffer.h"
#include "bench/way.h"

namespace accord::bench {
namespace {

class StagedWay : public Way, private MessageHooks {
 public:
  StagedWay(const Session& session, std::string name, Memory memory)
      : session_(session),
        name_(std::move(name)),
        pageable_(memory == Memory::host),
        host_send_(session.accord.get(), memory),
        host_recv_(session.accord.get(), memory) {}

  std::string name() const override { return name_; }

  std::string why_not(const Operation& operation) override {
    if (!operation.has_data) return "there is nothing to stage";
    if (operation.reads_others) return "who is read from would have to stage, and does nothing";
    const Options& options = session_.options;
    if (cpu_may_touch(options.send_memory) && cpu_may_touch(options.recv_memory)) {
      return "both buffers are in host memory already";
    }
    return "";
  }

  std::string prepare(const Trial& trial) override {
    const std::size_t element_bytes = session_.element->size_bytes;
    program_ = trial.buffers;
    send_bytes_ = staged_bytes(session_.options.send_memory, trial.extent.send);
    recv_bytes_ = staged_bytes(session_.options.recv_memory, trial.extent.recv);
    if (send_bytes_ > 0) host_send_.reserve(send_bytes_);
    if (recv_bytes_ > 0) host_recv_.reserve(recv_bytes_);
    call_ =
        make_call(*trial.operation, {.shape = &trial.shape,
                                     .send = send_bytes_ > 0 ? host_send_.data() : program_.send,
                                     .recv = recv_bytes_ > 0 ? host_recv_.data() : program_.recv,
                                     .type = session_.mpi_type,
                                     .element_bytes = element_bytes,
                                     .op = session_.mpi_op,
                                     .comm = session_.comm});
    message_bytes_ = trial.shape.count() * element_bytes;
    call_->hooks = this;
    auto steps = trial.operation->bind(session_.host.table, session_.options.form, *call_);
    if (!steps) {
      return fmt::format("the MPI has no {} form of this operation",
                         to_text(session_.options.form));
    }
    steps_ = std::move(*steps);
    return "";
  }

  void run() override {
    for (const Step& step : steps_) {
      const bool reads = step.reads_send && !step.by_message && send_bytes_ > 0;
      const bool writes = step.writes_recv && !step.by_message && recv_bytes_ > 0;
      if (reads) copy_to_host(host_send_.data(), program_.send, send_bytes_);
      if (step.invocation->run() != MPI_SUCCESS) throw std::runtime_error("an MPI call failed");
      if (writes) copy_to_device(program_.recv, host_recv_.data(), recv_bytes_);
    }
  }

  void release() override {
    steps_.clear();
    call_.reset();
  }

  std::string detail() const override {
    return session_.cuda != nullptr ? session_.cuda->copy_name() : "accord_memcpy";
  }

 private:
  void before_send(std::size_t slot) override {
    if (send_bytes_ == 0) return;
    copy_to_host(message(host_send_.data(), slot), message(program_.send, slot), message_bytes_);
  }
  void after_receive(std::size_t slot) override {
    if (recv_bytes_ == 0) return;
    copy_to_device(message(program_.recv, slot), message(host_recv_.data(), slot), message_bytes_);
  }
  void* message(void* buffer, std::size_t slot) const {
    return static_cast<std::byte*>(buffer) + slot * message_bytes_;
  }
  std::size_t staged_bytes(Memory memory, std::size_t elements) const {
    return cpu_may_touch(memory) ? 0 : elements * session_.element->size_bytes;
  }
  void copy_to_host(void* dst, const void* src, std::size_t size_bytes) {
    if (session_.cuda != nullptr) {
      session_.cuda->copy_to_host(dst, src, size_bytes);
    } else {
      session_.accord->copy(dst, src, size_bytes);
    }
  }
  void copy_to_device(void* dst, const void* src, std::size_t size_bytes) {
    if (session_.cuda != nullptr) {
      session_.cuda->copy_to_device(dst, src, size_bytes);
      // From pageable memory the call returns before small data has arrived: another stream (or
      // process that shares the GPU) still reads the old bytes, which the verification saw up to 32
      // KiB.
      if (pageable_) session_.cuda->synchronize(nullptr);
    } else {
      session_.accord->copy(dst, src, size_bytes);
    }
  }

  const Session& session_;
  std::string name_;
  bool pageable_;
  Buffer host_send_;
  Buffer host_recv_;
  Buffers program_;
  std::size_t send_bytes_ = 0;
  std::size_t recv_bytes_ = 0;
  std::size_t message_bytes_ = 0;  // of one message of the bandwidth tests
  std::unique_ptr<Call> call_;
  Steps steps_;
};

}  // namespace

std::unique_ptr<Way> make_staged_pinned(const Session& session) {
  return std::make_unique<StagedWay>(session, "staged", Memory::pinned);
}

std::unique_ptr<Way> make_staged_pageable(const Session& session) {
  return std::make_unique<StagedWay>(session, "staged-pageable", Memory::host);
}

}  // namespace accord::bench
