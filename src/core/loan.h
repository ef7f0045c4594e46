// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The end of a loan: a message that its sender has lent to the receiver (node/outbox.h), and whose
// buffer the user wants back. The receiver is given a while to begin to read it, then it is moved
// out of the way. Knows no mpi.h.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "core/engine.h"
#include "core/requests.h"
#include "node/outbox.h"

namespace accord::core {

class LoanEnd {
 public:
  LoanEnd(node::Lender& lender, const node::MessageHeader& header)
      : lender_(lender), header_(header) {}

  // To be called until `done` or an error: then the buffer is its user's.
  Status poll(bool& done);

 private:
  node::Lender& lender_;
  const node::MessageHeader& header_;
  std::optional<std::chrono::steady_clock::time_point> patience_ends_;
};

// The same of a non-blocking send: entered once its user asks for its completion.
class LoanOperation final : public Operation {
 public:
  LoanOperation(node::Lender& lender, const node::MessageHeader& header)
      : lender_(lender), header_(header), end_(lender_, header_) {}

  const node::MessageHeader& header() const noexcept { return header_; }
  // Of the header, in the host MPI.
  void is_sent_by(HostRequest request) noexcept { sending_ = request; }
  Phase advance(HostPort& port) override;

 private:
  node::Lender& lender_;
  const node::MessageHeader header_;
  LoanEnd end_;
  HostRequest sending_ = 0;
  bool is_sent_ = false;
};

// What the user holds of it.
class TrackedLoan final : public Tracked {
 public:
  TrackedLoan(std::uint64_t comm, Engine& engine, std::shared_ptr<LoanOperation> operation)
      : engine_(engine), operation_(std::move(operation)) {
    context = comm;
  }
  void wanted() override {
    if (!std::exchange(is_wanted_, true)) engine_.submit(operation_, nullptr);
  }
  Status finish(const Completion&) override { return operation_->status(); }

 private:
  Engine& engine_;
  std::shared_ptr<LoanOperation> operation_;
  bool is_wanted_ = false;
};

}  // namespace accord::core
