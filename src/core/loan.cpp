// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/loan.h"

#include <utility>

namespace accord::core {
namespace {

// What a copy within a device takes: to begin, and for each byte.
constexpr std::chrono::microseconds kMoveTime{10};
constexpr std::size_t kMovedBytesPerNanosecond = 1500;

}  // namespace

Status LoanEnd::poll(bool& done) {
  const Status status = step(done);
  if ((done || !status.ok()) && std::exchange(is_waiting_, false)) outbox_.end_wait(move_time());
  return status;
}

Status LoanEnd::step(bool& done) {
  auto loan = node::Outbox::Loan::ended;
  ACCORD_TRY(outbox_.look(header_, loan));
  done = loan == node::Outbox::Loan::ended;
  if (loan != node::Outbox::Loan::untouched) return {};
  if (!std::exchange(is_waiting_, true)) patience_ends_ = outbox_.begin_wait(move_time());
  return node::Outbox::Clock::now() < patience_ends_ ? Status() : outbox_.move(header_);
}

std::chrono::nanoseconds LoanEnd::move_time() const noexcept {
  return kMoveTime + std::chrono::nanoseconds(header_.size_bytes / kMovedBytesPerNanosecond);
}

Operation::Phase LoanOperation::advance(HostPort& port) {
  if (!is_sent_) {
    Completion completion;
    if (is_unwanted_.exchange(false)) port.cancel(sending_);
    status_ = port.test_message(sending_, is_sent_, completion);
    is_cancelled_ = is_sent_ && completion.cancelled;
    if (!status_.ok() || is_cancelled_) outbox_.withdraw(header_);
  }
  // A rank that leaves waits for nobody to take the header: who does so yet finds the message.
  bool done = !status_.ok() || is_cancelled_ || (!is_sent_ && outbox_.is_leaving());
  if (is_sent_ && !done) {
    status_ = end_.poll(done);
    done = done || !status_.ok();
  }
  return done ? Phase::done : Phase::issued;
}

}  // namespace accord::core
