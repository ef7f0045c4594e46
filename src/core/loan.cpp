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
  using Clock = std::chrono::steady_clock;
  auto loan = node::Outbox::Loan::ended;
  done = true;
  ACCORD_TRY(outbox_.look(header_, loan));
  if (loan == node::Outbox::Loan::ended) return {};
  done = false;
  if (loan == node::Outbox::Loan::being_read) return {};
  const auto now = Clock::now();
  if (!patience_ends_) {
    patience_ends_ =
        now + kMoveTime + std::chrono::nanoseconds(header_.size_bytes / kMovedBytesPerNanosecond);
  }
  return now < *patience_ends_ ? Status() : outbox_.move(header_);
}

Operation::Phase LoanOperation::advance(HostPort& port) {
  if (!is_sent_) {
    status_ = port.test(sending_, is_sent_);
    if (!status_.ok()) outbox_.withdraw(header_);
  }
  bool done = !status_.ok();
  if (is_sent_ && !done) {
    status_ = end_.poll(done);
    done = done || !status_.ok();
  }
  return done ? Phase::done : Phase::issued;
}

}  // namespace accord::core
