// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Direct: UCX reads the sender's memory and writes the receiver's, be they on devices, by what it
// finds best for the two (the adapter itself, or a pipeline through host memory of its own). The
// receiver posts a tagged receive before it asks, so that the data always finds its place.
#include "net/design.h"

namespace accord::net {
namespace {

class TaggedTransfer final : public Transfer {
 public:
  TaggedTransfer(Worker& worker, Ticket ticket) : worker_(worker), ticket_(std::move(ticket)) {}
  ~TaggedTransfer() override {
    if (!is_done_) worker_.cancel(ticket_);
  }
  Status advance(bool& done) override {
    const Status status = worker_.poll(ticket_, done);
    is_done_ = done;
    return status;
  }
  void stop() noexcept override { worker_.cancel(ticket_); }

 private:
  Worker& worker_;
  Ticket ticket_;
  bool is_done_ = false;
};

class Direct final : public Design {
 public:
  const char* name() const noexcept override { return "direct"; }
  const char* path() const noexcept override { return "net-direct"; }
  bool takes(const Worker& worker, const device::PointerInfo& where) const override {
    return worker.reaches(where);
  }
  Status receive(const Line& line, const Memory& to, std::vector<std::byte>&,
                 std::unique_ptr<Transfer>& made) const override {
    made = std::make_unique<TaggedTransfer>(
        line.worker, line.worker.receive(line.peer, line.tag, to.address(), to.size_bytes));
    return {};
  }
  Status send(const Line& line, const Memory& from, Bytes,
              std::unique_ptr<Transfer>& made) const override {
    made = std::make_unique<TaggedTransfer>(
        line.worker, line.worker.send(line.peer, line.tag, from.address(), from.size_bytes));
    return {};
  }
};

}  // namespace

const Design& direct_design() {
  static const Direct& instance = *new Direct;
  return instance;
}

}  // namespace accord::net
