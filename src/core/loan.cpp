// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/loan.h"

namespace accord::core {
namespace {

// What a copy within a device takes: to begin, and for each byte.
constexpr std::chrono::microseconds kMoveTime{10};
constexpr std::size_t kMovedBytesPerNanosecond = 1500;

}  // namespace

Status LoanEnd::poll(bool& done) {
  auto loan = node::Outbox::Loan::ended;
  done = true;
  ACCORD_TRY(outbox_.look(header_, loan));
  if (loan == node::Outbox::Loan::ended) return {};
  done = false;
  if (loan == node::Outbox::Loan::being_read) return {};
  if (!patience_ends_) {
    patience_ends_ = outbox_.moved_by(
        kMoveTime + std::chrono::nanoseconds(header_.size_bytes / kMovedBytesPerNanosecond));
  }
  return node::Outbox::Clock::now() < *patience_ends_ ? Status() : outbox_.move(header_);
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
