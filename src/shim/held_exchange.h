// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// MPI_Isendrecv and its like where the message to receive is held (held_messages.h): a receive by
// its handle and a send, of which the user sees one request.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "shim/tracked_message.h"

namespace accord::shim {

// A receive beside a send that has not begun yet: unless it is kept it is ended, also where the
// program's error handler throws. What has been matched is received.
class Unmatched {
 public:
  explicit Unmatched(MPI_Request& receive) : receive_(&receive) {}
  ~Unmatched() {
    if (receive_ != nullptr && host::Cancel(receive_) == MPI_SUCCESS)
      (void)host::Wait(receive_, MPI_STATUS_IGNORE);
  }
  Unmatched(const Unmatched&) = delete;
  Unmatched& operator=(const Unmatched&) = delete;
  void keep() noexcept { receive_ = nullptr; }

 private:
  MPI_Request* receive_;
};

class HeldExchange final : public core::Operation {
 public:
  HeldExchange(MPI_Request receive, MPI_Request send)
      : receive_(to_bits(receive)), send_(to_bits(send)) {}

  Phase advance(core::HostPort& port) override {
    if (!received_) {
      const Status tested = port.test_message(receive_, received_, completion_);
      received_ = received_ || !tested.ok();
      keep_first(status_, tested);
    }
    if (!sent_) {
      const Status tested = port.test(send_, sent_);
      sent_ = sent_ || !tested.ok();
      keep_first(status_, tested);
    }
    return received_ && sent_ ? Phase::done : Phase::issued;
  }
  const core::Completion& completion() const noexcept { return completion_; }

 private:
  core::HostRequest receive_;
  core::HostRequest send_;
  bool received_ = false;
  bool sent_ = false;
  core::Completion completion_;
};

class TrackedExchange final : public core::Tracked {
 public:
  TrackedExchange(MPI_Comm comm, Description d, const HeldMessage& held,
                  std::vector<std::byte> sent)
      : description_(std::move(d)), sent_(std::move(sent)) {
    context = to_bits(comm);
    origin_ = {held.source, held.tag, 0, true};
  }
  Status finish(const core::Completion&) override {
    ACCORD_TRY(operation->status());
    facts = origin_;
    facts->received_bytes = operation->completion().received_bytes;
    return finish_receive(description_, operation->completion(), facts);
  }
  Description& description() { return description_; }
  const std::vector<std::byte>& sent() const noexcept { return sent_; }

  std::shared_ptr<HeldExchange> operation;

 private:
  Description description_;
  core::MessageInfo origin_;
  std::vector<std::byte> sent_;  // what goes out where it would else be received into
};

// `receive` and `send` make the host MPI's requests; `sent`: what the latter is to send, or
// nothing.
template <class Receive, class Send>
int exchange_held(MPI_Comm comm, Description d, HeldMessage& held, std::vector<std::byte> sent,
                  MPI_Request* request, Receive receive, Send send) {
  const auto substitute = held.substitute;
  d.substitute = substitute;
  const auto work = std::make_shared<TrackedExchange>(comm, std::move(d), held, std::move(sent));
  MPI_Request receiving = MPI_REQUEST_NULL;
  MPI_Request sending = MPI_REQUEST_NULL;
  if (const int code = receive(work->description().recv.host(), &held.handle, &receiving))
    return raise_for(substitute, code);
  Unmatched receive_without_send(receiving);
  const void* const from =
      work->sent().empty() ? work->description().send.host() : work->sent().data();
  if (const int code = send(from, &sending)) return code;
  receive_without_send.keep();
  work->operation = std::make_shared<HeldExchange>(receiving, sending);
  core::HostRequest bits = 0;
  const Status submitted = engine().submit(work->operation, nullptr, bits);
  if (!submitted.ok()) return raise(comm, submitted);
  *request = from_bits<MPI_Request>(bits);
  requests().track(bits, work);
  return MPI_SUCCESS;
}

}  // namespace accord::shim
