// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/loan.h"

#include <utility>

namespace accord::core {
Status LoanEnd::poll(bool& done) {
  const Status status = step(done);
  if ((done || !status.ok()) && std::exchange(is_waiting_, false)) lender_.end_wait(patience());
  return status;
}

Status LoanEnd::step(bool& done) {
  auto loan = node::Lender::Loan::ended;
  ACCORD_TRY(lender_.look(header_, loan));
  done = loan == node::Lender::Loan::ended;
  if (loan != node::Lender::Loan::untouched) {
    // Who is given a while to begin is given all of it once more.
    if (!done && std::exchange(is_waiting_, false)) lender_.end_wait(patience());
    return {};
  }
  if (!std::exchange(is_waiting_, true)) patience_ends_ = lender_.begin_wait(patience());
  if (node::Lender::Clock::now() < patience_ends_) return {};
  ACCORD_TRY(lender_.move(header_));
  ACCORD_TRY(lender_.look(header_, loan));
  done = loan == node::Lender::Loan::ended;
  return {};
}

std::chrono::nanoseconds LoanEnd::patience() const noexcept {
  return lender_.patience(header_.size_bytes);
}

Operation::Phase LoanOperation::advance(HostPort& port) {
  if (!is_sent_) {
    Completion completion;
    if (is_unwanted_.exchange(false)) port.cancel(sending_);
    status_ = port.test_message(sending_, is_sent_, completion);
    is_cancelled_ = is_sent_ && completion.cancelled;
    if (!status_.ok() || is_cancelled_) lender_.withdraw(header_);
  }
  // A rank that leaves waits for nobody to take the header: who does so yet finds the message.
  if (is_sent_ && !is_received_ && status_.ok() && !is_cancelled_)
    status_ = lender_.look_for_receive(header_, is_received_);
  const bool is_taken = is_sent_ && is_received_;
  bool done = !status_.ok() || is_cancelled_ || (!is_taken && lender_.is_leaving());
  if (is_taken && !done) {
    status_ = end_.poll(done);
    done = done || !status_.ok();
  }
  return done ? Phase::done : Phase::issued;
}

}  // namespace accord::core
