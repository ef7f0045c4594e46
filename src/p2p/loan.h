// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The end of a loan: a message that its sender has lent to the receiver (node/outbox.h), and whose
// buffer the user wants back. The receiver is given a while to begin to read it, after all others
// that are waited for, and longer while it looks what has come for its receives; then it is moved
// out of the way: the receive that it is for may be posted only after what this rank sends next. So
// it may stay where it is for as long as this rank sends nothing anyhow: while its call waits for
// others that are no loans.
// Knows no mpi.h.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "core/engine.h"
#include "core/requests.h"
#include "node/outbox.h"

namespace accord::p2p {

class LoanEnd {
 public:
  LoanEnd(node::Lender& lender, const node::MessageHeader& header)
      : lender_(lender), header_(header) {}

  // Looks after which a receiver has found all that it has receives for, whatever the host MPI's
  // progress takes; and how long it is given for them in all, though it seems to look.
  static constexpr std::uint64_t kLooks = 8;
  static constexpr std::chrono::seconds kLookTime{1};

  // To be called until `done` or an error: then the buffer is its user's. Meanwhile it is not moved
  // where it may `stay`.
  enum class Stay { no, yes };
  Status poll(bool& done, Stay stay = Stay::no);

 private:
  Status step(bool& done, Stay stay);
  using Clock = node::Lender::Clock;
  void begin_wait();
  void end_wait();
  bool is_looked_for(Clock::time_point now);

  node::Lender& lender_;
  const node::MessageHeader& header_;
  bool is_waiting_ = false;
  Stay stays_ = Stay::no;
  int receiver_ = -1;
  Clock::duration patience_{};
  Clock::time_point patience_ends_;
  Clock::time_point looks_end_;
  std::uint64_t first_look_ = 0;
  std::uint64_t last_look_ = 0;
};

// The same of a non-blocking send: entered once its user asks for its completion.
class LoanOperation final : public core::Operation {
 public:
  // A synchronous send is complete once its receiver has received it, too.
  enum class Until { returned, received };
  LoanOperation(node::Lender& lender, const node::MessageHeader& header,
                Until until = Until::returned)
      : lender_(lender),
        header_(header),
        end_(lender_, header_),
        is_received_(until == Until::returned) {}

  const node::MessageHeader& header() const noexcept { return header_; }
  // Of the header, in the host MPI.
  void is_sent_by(core::HostRequest request) noexcept { sending_ = request; }
  // Its user no longer wants it: nor does the receiver get it where the host MPI takes the header
  // back, which is known when the operation is done.
  void cancel() noexcept { is_unwanted_.store(true); }
  bool is_cancelled() const noexcept { return is_cancelled_; }
  // Whether the call that waits for it waits for others, too.
  void may_stay(bool may) noexcept { may_stay_.store(may, std::memory_order_relaxed); }
  Phase advance(core::HostPort& port) override;
  void abandon() noexcept override { lender_.withdraw(header_); }

 private:
  node::Lender& lender_;
  const node::MessageHeader header_;
  LoanEnd end_;
  core::HostRequest sending_ = 0;
  bool is_sent_ = false;
  bool is_received_;  // or need not be
  std::atomic<bool> is_unwanted_{false};
  std::atomic<bool> may_stay_{false};
  bool is_cancelled_ = false;
};

// What the user holds of it.
class TrackedLoan final : public core::Tracked {
 public:
  TrackedLoan(std::uint64_t comm, core::Engine& engine, std::shared_ptr<LoanOperation> operation)
      : engine_(engine), operation_(std::move(operation)) {
    context = comm;
  }
  void wanted() override {
    if (!std::exchange(is_wanted_, true)) engine_.add(operation_);
  }
  bool is_pending() const noexcept override {
    return is_wanted_ && operation_->phase() != core::Operation::Phase::done;
  }
  bool may_stay(bool may) override {
    operation_->may_stay(may);
    return true;
  }
  bool cancel() override {
    operation_->cancel();
    return true;
  }
  Status finish(const core::Completion&) override {
    if (operation_->is_cancelled())
      facts = core::MessageInfo{.has_origin = false, .is_cancelled = true};
    return operation_->status();
  }

 private:
  core::Engine& engine_;
  std::shared_ptr<LoanOperation> operation_;
  bool is_wanted_ = false;
};

}  // namespace accord::p2p
