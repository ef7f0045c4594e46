// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/loan.h"

namespace accord::core {
Status LoanEnd::poll(bool& done) {
  using Clock = std::chrono::steady_clock;
  auto loan = node::Lender::Loan::ended;
  done = true;
  ACCORD_TRY(lender_.look(header_, loan));
  if (loan == node::Lender::Loan::ended) return {};
  done = false;
  if (loan == node::Lender::Loan::being_read) return {};
  const auto now = Clock::now();
  if (!patience_ends_) patience_ends_ = now + lender_.patience(header_.size_bytes);
  return now < *patience_ends_ ? Status() : lender_.move(header_);
}

Operation::Phase LoanOperation::advance(HostPort& port) {
  if (!is_sent_) {
    status_ = port.test(sending_, is_sent_);
    if (!status_.ok()) lender_.withdraw(header_);
  }
  bool done = !status_.ok();
  if (is_sent_ && !done) {
    status_ = end_.poll(done);
    done = done || !status_.ok();
  }
  return done ? Phase::done : Phase::issued;
}

}  // namespace accord::core
