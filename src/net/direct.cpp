// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Direct: UCX reads the sender's memory and writes the receiver's, be they on devices, by what it
// finds best for the two (the adapter itself, or a pipeline through host memory of its own). The
// receiver posts a tagged receive before it asks, so that the data always finds its place. What
// another design could not bring comes here, too, so that an end that UCX does not reach is copied
// by way of page-locked memory.
#include "device/staging_pool.h"
#include "net/copying.h"
#include "net/design.h"

namespace accord::net {
namespace {

// What UCX moves of one end: the message's own memory, or other memory in its stead.
class TaggedTransfer : public Transfer {
 public:
  TaggedTransfer(const Line& line, const Memory& memory) : line_(line), memory_(memory) {}
  ~TaggedTransfer() override {
    if (is_moving_) line_.worker.cancel(ticket_);
  }
  void stop() noexcept override {
    is_stopped_ = true;
    if (is_moving_) line_.worker.cancel(ticket_);
  }
  bool must_be_polled() const noexcept override { return copying_.is_under_way(); }

 protected:
  Status stand_in() {
    if (line_.worker.reaches(memory_.where)) return {};
    return device::staging_pool().acquire(memory_.where.runtime, memory_.size_bytes, bounce_);
  }
  void* place() const { return bounce_.empty() ? memory_.address() : bounce_.data(); }
  device::PointerInfo kind() const {
    return bounce_.empty() ? memory_.where : device::PointerInfo();
  }
  Status poll(bool& done) {
    const Status status = line_.worker.poll(ticket_, done);
    is_moving_ = !done;
    return status;
  }

  const Line line_;
  const Memory memory_;
  device::StagingBuffer bounce_;
  Copying copying_;
  Ticket ticket_;
  bool is_moving_ = false;
  bool is_stopped_ = false;
};

class TaggedReceive final : public TaggedTransfer {
 public:
  using TaggedTransfer::TaggedTransfer;
  Status begin() {
    ACCORD_TRY(stand_in());
    ticket_ = line_.worker.receive(line_.peer, line_.tag, place(), memory_.size_bytes, kind());
    is_moving_ = true;
    return {};
  }
  Status advance(bool& done) override {
    done = true;
    if (is_moving_) {
      ACCORD_TRY(poll(done));
      if (!done || bounce_.empty()) return {};
      ACCORD_TRY(copying_.begin(memory_.where, memory_.start, bounce_.data(), memory_.size_bytes));
    }
    return copying_.poll(done);
  }
};

class TaggedSend final : public TaggedTransfer {
 public:
  using TaggedTransfer::TaggedTransfer;
  Status begin() {
    ACCORD_TRY(stand_in());
    if (!bounce_.empty())
      return copying_.begin(memory_.where, bounce_.data(), memory_.start, memory_.size_bytes);
    start();
    return {};
  }
  Status advance(bool& done) override {
    done = true;
    if (!is_moving_) {
      if (is_stopped_) return {StatusCode::network, "direct: the receiver has given up"};
      ACCORD_TRY(copying_.poll(done));
      if (!done) return {};
      start();
    }
    return poll(done);
  }

 private:
  void start() {
    ticket_ = line_.worker.send(line_.peer, line_.tag, place(), memory_.size_bytes, kind());
    is_moving_ = true;
  }
};

template <class Made>
Status make(const Line& line, const Memory& memory, std::unique_ptr<Transfer>& made) {
  auto transfer = std::make_unique<Made>(line, memory);
  ACCORD_TRY(transfer->begin());
  made = std::move(transfer);
  return {};
}

class Direct final : public Design {
 public:
  const char* name() const noexcept override { return "direct"; }
  const char* path() const noexcept override { return "net-direct"; }
  bool takes(const Worker& worker, const device::PointerInfo& where) const override {
    return worker.reaches(where);
  }
  Status receive(const Line& line, const Memory& to, std::vector<std::byte>&,
                 std::unique_ptr<Transfer>& made) const override {
    return make<TaggedReceive>(line, to, made);
  }
  Status send(const Line& line, const Memory& from, Bytes,
              std::unique_ptr<Transfer>& made) const override {
    return make<TaggedSend>(line, from, made);
  }
};

}  // namespace

const Design& direct_design() {
  static const Direct& instance = *new Direct;
  return instance;
}

}  // namespace accord::net
