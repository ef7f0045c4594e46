// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "p2p/loan.h"

#include <utility>

namespace accord::p2p {
Status LoanEnd::poll(bool& done, Stay stay) {
  const Status status = step(done, stay);
  if (done || !status.ok()) end_wait();
  return status;
}

void LoanEnd::begin_wait() {
  if (std::exchange(is_waiting_, true)) return;
  receiver_ = lender_.receiver_of(header_);
  patience_ = lender_.patience(header_);
  patience_ends_ = lender_.begin_wait(receiver_, patience_);
  looks_end_ = patience_ends_ + kLookTime;
  first_look_ = last_look_ = lender_.attention_of(receiver_).looks;
}

void LoanEnd::end_wait() {
  if (std::exchange(is_waiting_, false)) lender_.end_wait(receiver_, patience_);
}

// Whether a receiver that has been given its time is to be given as much again: it is at it, and
// has yet to look often enough. So what it has a receive for is not moved, and what it has none for
// is soon.
bool LoanEnd::is_looked_for(Clock::time_point now) {
  const node::Lender::Attention attention = lender_.attention_of(receiver_);
  const bool has_looked = std::exchange(last_look_, attention.looks) != attention.looks;
  if ((!attention.is_looking && !has_looked) || attention.looks - first_look_ >= kLooks ||
      now >= looks_end_)
    return false;
  patience_ends_ = now + patience_;
  return true;
}

Status LoanEnd::step(bool& done, Stay stay) {
  auto loan = node::Lender::Loan::ended;
  ACCORD_TRY(lender_.look(header_, loan));
  done = loan == node::Lender::Loan::ended;
  if (loan != node::Lender::Loan::untouched) {
    // Who is given a while to begin is given all of it once more.
    if (!done) end_wait();
    return {};
  }
  // Its receiver knows that it is waited for all the same, but its time begins afterwards.
  if (std::exchange(stays_, stay) != stay) end_wait();
  begin_wait();
  if (stay == Stay::yes) return {};
  if (const auto now = Clock::now(); now < patience_ends_ || is_looked_for(now)) return {};
  if (lender_.patience(header_) > patience_) {
    // There is no longer room near by, and to move it takes longer than it did.
    end_wait();
    begin_wait();
    return {};
  }
  ACCORD_TRY(lender_.move(header_));
  ACCORD_TRY(lender_.look(header_, loan));
  done = loan == node::Lender::Loan::ended;
  return {};
}

core::Operation::Phase LoanOperation::advance(core::HostPort& port) {
  if (!is_sent_) {
    core::Completion completion;
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
    const bool stays = may_stay_.load(std::memory_order_relaxed);
    status_ = end_.poll(done, stays ? LoanEnd::Stay::yes : LoanEnd::Stay::no);
    done = done || !status_.ok();
  }
  return done ? Phase::done : Phase::issued;
}

}  // namespace accord::p2p
