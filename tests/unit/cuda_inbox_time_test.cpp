// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When the kernel of inbox exchanges stays and leaves, and what the host makes of an answer that
// data is missing: with the device's time in the test's hand, so only over the fake driver. Part of
// cuda_inbox_test.
#include <gtest/gtest.h>

#include <random>

#include "base/config.h"
#include "cuda_inbox_rig.h"
#include "fake_cuda_control.h"

namespace accord::test {
namespace {

using device::inbox_bit;

constexpr unsigned kMuchUs = 1000000;  // longer than any kernel lingers or waits

class CudaInboxTime : public testing::Test {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
    if (fake_cuda() == nullptr) GTEST_SKIP() << "a device's time passes by itself";
    const Status opened = rig_.open();
    if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
    ASSERT_OK(opened);
    make_stay();
  }
  void TearDown() override {
    if (fake_cuda() == nullptr) return;
    fake_cuda()->hold_departures(false);
    fake_cuda()->release_time();
  }

  // The next call finds the kernel, whatever earlier tests have taught the server, and time held.
  void make_stay() {
    constexpr int kTriesMax = 100;  // more than there are calls from one trial to the next
    for (int attempt = 0; attempt < kTriesMax; ++attempt) {
      const unsigned launches = fake_cuda()->launches();
      fake_cuda()->hold_time();
      ASSERT_OK(rig_.run(kBytes));
      ASSERT_OK(rig_.run(kBytes));
      if (fake_cuda()->launches() - launches < 2 && fake_cuda()->residents() > 0) return;
    }
    FAIL() << "it never lingers";
  }

  // Again and again, since the kernel may look at the clock at any time after its answer.
  void let_leave() {
    ASSERT_TRUE(soon([] {
      fake_cuda()->pass_time(kMuchUs);
      return fake_cuda()->residents() == 0;
    }));
  }

  static bool has_left() {
    return soon([] { return fake_cuda()->residents() == 0; });
  }

  template <class Condition>
  static bool soon(Condition condition) {
    const auto start = Clock::now();
    while (!condition()) {
      if (ms_since(start) > 10000) return false;
      std::this_thread::yield();
    }
    return true;
  }

  unsigned launches_of_a_call() {
    const unsigned before = fake_cuda()->launches();
    EXPECT_OK(rig_.run(kBytes));
    return fake_cuda()->launches() - before;
  }

  static constexpr std::size_t kBytes = 100;
  Rig rig_;
};

TEST_F(CudaInboxTime, a_kernel_serves_until_it_has_lingered) {
  for (int call = 0; call < 10; ++call) {
    EXPECT_EQ(0U, launches_of_a_call());
    fake_cuda()->pass_time(static_cast<unsigned>(config().linger_us - 1));
  }
  let_leave();
  EXPECT_EQ(1U, launches_of_a_call());
  EXPECT_EQ(0U, launches_of_a_call());
}

TEST_F(CudaInboxTime, a_ring_that_it_does_not_hear_any_more_launches_it_again) {
  fake_cuda()->hold_departures(true);
  ASSERT_TRUE(soon([] {
    fake_cuda()->pass_time(kMuchUs);
    return fake_cuda()->departing() > 0;
  }));
  const unsigned before = fake_cuda()->launches();
  InboxTicket ticket = rig_.ticket(kBytes);
  ASSERT_OK(rig_.server().begin(ticket));
  EXPECT_EQ(before, fake_cuda()->launches()) << "as far as the host knows it is there";
  fake_cuda()->hold_departures(false);
  bool done = false;
  EXPECT_TRUE(soon([&] {
    EXPECT_OK(rig_.server().poll(ticket, done));
    return done;
  }));
  EXPECT_EQ(before + 1, fake_cuda()->launches());
}

// Those that linger on hear that the next launch waits for them.
TEST_F(CudaInboxTime, blocks_that_stayed_behind_leave_when_others_have_to_be_launched) {
  constexpr std::size_t kWideBytes = 20000;
  bool stays = false;
  for (int call = 0; call < 100 && !stays; ++call) {
    const unsigned before = fake_cuda()->launches();
    ASSERT_OK(rig_.run(kWideBytes));
    stays = fake_cuda()->launches() == before;
  }
  ASSERT_TRUE(stays);
  const unsigned before = fake_cuda()->launches();
  fake_cuda()->dismiss(3);
  for (int call = 0; call < 2; ++call) {  // what the first one launches stays
    InboxTicket ticket = rig_.ticket(kWideBytes);
    ASSERT_OK(rig_.server().begin(ticket));
    bool done = false;
    ASSERT_TRUE(soon([&] {
      EXPECT_OK(rig_.server().poll(ticket, done));
      return done;
    })) << "no time has passed for those that linger";
    EXPECT_EQ(before + 1, fake_cuda()->launches()) << "call " << call;
  }
}

// At any moment of its leaving.
TEST_F(CudaInboxTime, no_ring_is_lost) {
  fake_cuda()->release_time();
  std::mt19937 random(1);
  for (int call = 0; call < 1000; ++call) {
    const std::size_t size_bytes = call % 3 == 0 ? 20000 : kBytes;
    const auto data = pattern(size_bytes, static_cast<unsigned>(call));
    ASSERT_OK(copy_one(rig_.src(), data.data(), size_bytes));
    const auto pause = std::chrono::microseconds(random() % 100);
    for (const auto start = Clock::now(); Clock::now() - start < pause;) std::this_thread::yield();
    ASSERT_OK(rig_.run(size_bytes));
    ASSERT_EQ(data, contents(rig_.dst(), size_bytes));
  }
}

TEST_F(CudaInboxTime, it_does_not_linger_for_a_program_that_always_comes_too_late) {
  constexpr int kMissesMax = 4;
  constexpr int kCallsPerTrial = 32;
  for (int miss = 1; miss < kCallsPerTrial; ++miss) {
    if (miss <= kMissesMax + 1)
      let_leave();
    else
      ASSERT_TRUE(has_left()) << "call " << miss;
    EXPECT_EQ(1U, launches_of_a_call()) << "call " << miss;
  }
  ASSERT_TRUE(has_left());
  EXPECT_EQ(1U, launches_of_a_call());
  EXPECT_EQ(0U, launches_of_a_call()) << "a trial: it has stayed";
  let_leave();
  EXPECT_EQ(1U, launches_of_a_call());
  EXPECT_EQ(0U, launches_of_a_call()) << "and is trusted again";
}

// Two ranks on the device: what the first has sent is taken before the second has asked.
class CudaInboxLate : public CudaInboxTime {
 protected:
  void SetUp() override {
    CudaInboxTime::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (int rank = 0; rank < 2; ++rank) ASSERT_OK(ranks_[rank].open(cuda_runtime(), 0, rank, 2));
    ASSERT_OK(InboxRank::connect(ranks_));
    for (int rank = 0; rank < 2; ++rank) fill(rank, rank);
  }

  void fill(int rank, int number) {
    const auto data = pattern(kBytes, static_cast<unsigned>(100 + number));
    ASSERT_OK(copy_one(ranks_[rank].src(), data.data(), kBytes));
  }

  InboxTicket swap_ticket(int rank) {
    InboxTicket ticket = ranks_[rank].ticket(kBytes);
    ticket.exchange.send_to = ticket.exchange.receive_from = inbox_bit(1 - rank);
    return ticket;
  }

  void expect_received(int rank, int number) {
    EXPECT_EQ(pattern(kBytes, static_cast<unsigned>(100 + number)),
              contents(ranks_[rank].dst(), kBytes));
  }

  // Polls that often; whether it is done then.
  bool done_after(int rank, InboxTicket& ticket, int polls) {
    bool done = false;
    for (int poll = 0; poll < polls && !done; ++poll) {
      EXPECT_OK(ranks_[rank].server().poll(ticket, done));
      std::this_thread::yield();
    }
    return done;
  }

  void let_be_late(int rank, InboxTicket& ticket) {
    bool done = false;
    ASSERT_TRUE(soon([&] {
      fake_cuda()->pass_time(kMuchUs);
      EXPECT_OK(ranks_[rank].server().poll(ticket, done));
      return done || ticket.state == InboxTicket::State::late;
    }));
    EXPECT_FALSE(done);
    EXPECT_TRUE(ticket.sent);
  }

  InboxRank ranks_[2];
};

TEST_F(CudaInboxLate, a_second_ring_sends_nothing_again) {
  InboxTicket first = swap_ticket(0);
  ASSERT_OK(ranks_[0].server().begin(first));
  EXPECT_FALSE(done_after(0, first, 1000));
  EXPECT_EQ(InboxTicket::State::running, first.state) << "it waits as long as it has been told";
  let_be_late(0, first);

  fill(0, 7);  // as only a program in error would: it shows what is sent
  ASSERT_OK(ranks_[0].server().begin(first));
  let_be_late(0, first);
  InboxTicket second = swap_ticket(1);
  ASSERT_OK(ranks_[1].run(second));
  expect_received(1, 0);
  ASSERT_OK(ranks_[0].run(first));
  expect_received(0, 1);
  second = swap_ticket(1);
  first = swap_ticket(0);
  first.exchange.receive_from = 0;
  ASSERT_OK(ranks_[0].run(first));
  ASSERT_OK(ranks_[1].run(second));
  expect_received(1, 7);
}

TEST_F(CudaInboxLate, who_comes_second_waits_for_the_first_ones_answer) {
  InboxTicket first = swap_ticket(0);
  InboxTicket second = swap_ticket(1);
  ASSERT_OK(ranks_[0].server().begin(first));
  ASSERT_OK(ranks_[1].server().begin(second));
  EXPECT_FALSE(done_after(1, second, 1000));
  EXPECT_EQ(InboxTicket::State::waiting, second.state);
  let_be_late(0, first);
  ASSERT_OK(ranks_[1].run(second));
  ASSERT_OK(ranks_[0].run(first));
  expect_received(0, 1);
  expect_received(1, 0);
}

TEST_F(CudaInboxLate, one_that_is_given_up_leaves_its_memory_alone) {
  InboxTicket first = swap_ticket(0);
  ASSERT_OK(ranks_[0].server().begin(first));
  bool done = true;
  ranks_[0].server().stop(first, done);
  EXPECT_FALSE(done) << "the kernel is at it";
  ASSERT_TRUE(soon([&] {
    fake_cuda()->pass_time(kMuchUs);
    ranks_[0].server().stop(first, done);
    return done;
  }));
  EXPECT_EQ(InboxTicket::State::idle, first.state);
  const auto before = contents(ranks_[0].dst(), kBytes);
  InboxTicket second = swap_ticket(1);
  ASSERT_OK(ranks_[1].run(second));
  EXPECT_EQ(before, contents(ranks_[0].dst(), kBytes));
}

}  // namespace
}  // namespace accord::test
