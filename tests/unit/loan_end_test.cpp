// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How long the receiver of a message that is lent to it is waited for.
#include <unistd.h>

#include "p2p/loan.h"
#include "support.h"

namespace accord::test {
namespace {

using node::MessageHeader;

// Whose message is as it is told.
class Told final : public node::Lender {
 public:
  Loan loan = Loan::untouched;
  int moves = 0;
  Clock::duration awaited{0};

  bool recognises(const MessageHeader&) const noexcept override { return true; }
  void withdraw(const MessageHeader&) noexcept override {}
  bool is_lent(const MessageHeader&) const override { return true; }
  Status look(const MessageHeader&, Loan& now) override {
    now = loan;
    return {};
  }
  Status move(const MessageHeader&) override {
    ++moves;
    if (is_moved_at_once) loan = Loan::ended;
    return {};
  }
  bool is_moved_at_once = false;
  std::chrono::nanoseconds patience(const MessageHeader&) const noexcept override {
    return patience_now;
  }
  Attention attention_of(int) const noexcept override { return attention; }
  Attention attention;
  Clock::time_point begin_wait(int, Clock::duration takes) noexcept override {
    awaited += takes;
    return Clock::now() + takes;
  }
  void end_wait(int, Clock::duration takes) noexcept override { awaited -= takes; }
  static constexpr std::chrono::milliseconds kPatience{50};
  std::chrono::nanoseconds patience_now = kPatience;
};

// Its receiver was at others, and is given its time from then on.
TEST(LoanEnd, IsPatientAnewWithAReceiverThatHasBeenAtWork) {
  Told lender;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  const auto poll = [&] {
    bool done = false;
    EXPECT_OK(end.poll(done));
    EXPECT_FALSE(done);
  };
  poll();
  EXPECT_EQ(Told::kPatience, lender.awaited);
  lender.loan = node::Lender::Loan::being_read;
  ::usleep(60000);
  poll();
  EXPECT_EQ(lender.awaited.count(), 0);
  lender.loan = node::Lender::Loan::untouched;
  poll();
  EXPECT_EQ(0, lender.moves);
  ::usleep(60000);
  poll();
  EXPECT_EQ(1, lender.moves);
}

// Nobody is helped by a move while its sender waits for others. Its receiver knows that it is
// waited for all the same, and is given its time afterwards.
TEST(LoanEnd, MovesNothingThatMayStay) {
  using Stay = p2p::LoanEnd::Stay;
  Told lender;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  const auto poll = [&](Stay stay) {
    bool done = false;
    EXPECT_OK(end.poll(done, stay));
    EXPECT_FALSE(done);
  };
  poll(Stay::yes);
  EXPECT_EQ(Told::kPatience, lender.awaited);
  ::usleep(60000);
  poll(Stay::yes);
  poll(Stay::no);
  EXPECT_EQ(Told::kPatience, lender.awaited);
  EXPECT_EQ(0, lender.moves);
  ::usleep(60000);
  poll(Stay::no);
  EXPECT_EQ(1, lender.moves);
}

// Who waits for the buffer is not kept until the next poll.
TEST(LoanEnd, EndsWithTheMove) {
  Told lender;
  lender.is_moved_at_once = true;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  bool done = false;
  EXPECT_OK(end.poll(done));
  ::usleep(60000);
  EXPECT_OK(end.poll(done));
  EXPECT_TRUE(done);
  EXPECT_EQ(1, lender.moves);
  EXPECT_EQ(lender.awaited.count(), 0);
}

// Others have taken the room that was near by.
TEST(LoanEnd, IsMorePatientOnceAMoveTakesLonger) {
  Told lender;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  bool done = false;
  EXPECT_OK(end.poll(done));
  lender.patience_now *= 2;
  ::usleep(60000);
  EXPECT_OK(end.poll(done));
  EXPECT_EQ(0, lender.moves);
  EXPECT_EQ(2 * Told::kPatience, lender.awaited);
  ::usleep(110000);
  EXPECT_OK(end.poll(done));
  EXPECT_EQ(1, lender.moves);
}

// Who looks what has come gets the time for it, but not for ever: no receive may be posted for
// this.
TEST(LoanEnd, WaitsForAReceiverThatLooks) {
  Told lender;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  const auto poll_after_patience = [&] {
    ::usleep(60000);
    bool done = false;
    EXPECT_OK(end.poll(done));
  };
  bool done = false;
  EXPECT_OK(end.poll(done));
  lender.attention.is_looking = true;  // but busy with something else
  for (int i = 0; i < 3; ++i) poll_after_patience();
  EXPECT_EQ(0, lender.moves);
  lender.attention = {.is_looking = false, .looks = p2p::LoanEnd::kLooks - 1};  // and has left
  poll_after_patience();
  EXPECT_EQ(0, lender.moves);
  poll_after_patience();
  EXPECT_EQ(1, lender.moves);
}

TEST(LoanEnd, DoesNotWaitForAReceiverThatHasLookedInVain) {
  Told lender;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  bool done = false;
  EXPECT_OK(end.poll(done));
  lender.attention = {.is_looking = true, .looks = p2p::LoanEnd::kLooks};
  ::usleep(60000);
  EXPECT_OK(end.poll(done));
  EXPECT_EQ(1, lender.moves);
}

// Nor for one that says that it looks, and never does.
TEST(LoanEnd, DoesNotWaitForEver) {
  Told lender;
  const MessageHeader header;
  p2p::LoanEnd end(lender, header);
  lender.attention.is_looking = true;
  const auto begin = Told::Clock::now();
  for (bool done = false; lender.moves == 0; ::usleep(1000)) EXPECT_OK(end.poll(done));
  EXPECT_GE(Told::Clock::now() - begin, p2p::LoanEnd::kLookTime);
}

}  // namespace
}  // namespace accord::test
