// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that their sender lends to their receiver, where they lie: read there, moved out of the
// way, taken back, and given as long as is due; and what both ends learn of an error.
#include "p2p/loan.h"

#include <sys/resource.h>

#include "idle_port.h"
#include "outbox_world.h"

namespace accord::test {
namespace {

// A host MPI with one header under way, that its receiver takes when it is told to, unless it is
// cancelled before.
class HeaderPort final : public IdlePort {
 public:
  bool is_taken = false;
  bool is_cancelled = false;

  Status test(core::HostRequest&, bool& done) override {
    done = is_taken;
    return {};
  }
  Status test_message(core::HostRequest&, bool& done, core::Completion& completion) override {
    done = is_taken || is_cancelled;
    completion.cancelled = is_cancelled;
    return {};
  }
  void cancel(core::HostRequest) override { is_cancelled = !is_taken; }
};

// A message of rank 0 to rank 1 that is lent.
class Loan : public ::testing::Test {
 protected:
  void SetUp() override {
    ranks_.introduce();
    ranks_.lend(from_);
    from_.write(counted(1));
    lend_again();
  }

  void lend_again() {
    auto posted = p2p::Posted::no;
    ASSERT_OK(p2p::post_message(ranks_[0], segment_, staged(from_, segment_), 1, header_, posted));
    ASSERT_EQ(p2p::Posted::yes, posted);
    ASSERT_TRUE(ranks_[0].is_lent(header_));
  }

  node::Outbox::Loan look() {
    auto loan = node::Outbox::Loan::ended;
    EXPECT_OK(ranks_[0].look(header_, loan));
    return loan;
  }
  void fetch() {
    core::StagedBuffer buffer = staged(to_, segment_);
    EXPECT_OK(p2p::fetch_message(ranks_[1], segment_, buffer, header_));
  }
  // All of the outbox, that is, no message is left.
  void expect_all_room() {
    MessageHeader all;
    EXPECT_NE(nullptr, ranks_[0].reserve(1, kOutboxBytes, {}, all).start);
    ranks_[0].withdraw(all);
  }

  Processes ranks_{2};
  Buffer from_{kMessageBytes};
  const Buffer to_{kMessageBytes};
  const core::Segment segment_ = bytes(kMessageBytes);
  MessageHeader header_;
};

TEST_F(Loan, IsReadWhereItLies) {
  EXPECT_EQ(node::Outbox::Loan::untouched, look());
  from_.write(counted(2));
  fetch();
  EXPECT_EQ(counted(2), to_.read(kMessageBytes));
  EXPECT_EQ(node::Outbox::Loan::ended, look());
  EXPECT_FALSE(ranks_[0].is_lent(header_));
  expect_all_room();
}

// As where the receiver has closed it meanwhile: the sender must not wait for a reader.
TEST_F(Loan, EndsWithAnErrorWhereItsReceiverNoLongerReachesIt) {
  ranks_[1].close();
  core::StagedBuffer buffer = staged(to_, segment_);
  EXPECT_CODE(device_error, p2p::fetch_message(ranks_[1], segment_, buffer, header_));
  auto loan = node::Outbox::Loan::being_read;
  EXPECT_CODE(device_error, ranks_[0].look(header_, loan));
}

TEST_F(Loan, IsNotReceivedWhileItsHeaderHasBeenProbedOnly) {
  const auto is_received = [&] {
    bool received = false;
    EXPECT_OK(ranks_[0].look_for_receive(header_, received));
    return received;
  };
  EXPECT_TRUE(ranks_[1].may_hear_from(0));
  EXPECT_TRUE(is_received());  // by a receive that nothing tells of
  ranks_[1].begin_reading(0);
  EXPECT_FALSE(is_received());
  ranks_[1].is_probed(header_);
  EXPECT_FALSE(is_received());
  ranks_[1].end_reading(0);
  EXPECT_FALSE(is_received());
  ranks_[1].is_received(header_);
  EXPECT_TRUE(is_received());
  fetch();
  expect_all_room();
  EXPECT_TRUE(is_received());
}

// A send of such a message is complete only then.
TEST_F(Loan, OfASynchronousSendIsWaitedForUntilItIsReceived) {
  using Phase = core::Operation::Phase;
  HeaderPort port;
  p2p::LoanOperation operation(ranks_[0], header_, p2p::LoanOperation::Until::received);
  ranks_[1].begin_reading(0);
  ranks_[1].is_probed(header_);
  port.is_taken = true;
  ranks_[1].end_reading(0);
  const auto end = node::Outbox::Clock::now() + std::chrono::milliseconds(5);
  while (node::Outbox::Clock::now() < end) EXPECT_EQ(Phase::issued, operation.advance(port));
  EXPECT_EQ(0u, ranks_[0].counters().moved);
  ranks_[1].is_received(header_);
  fetch();
  EXPECT_EQ(Phase::done, operation.advance(port));
}

// As long as a header, which its receiver gets in its stead.
TEST_F(Loan, IsNoneWhereTheMessageIsKept) {
  std::array<std::byte, sizeof(MessageHeader)> sent;
  sent.fill(std::byte{42});
  MessageHeader header;
  EXPECT_FALSE(ranks_[0].begin_plain(1));
  const core::Segment segment = bytes(sent.size());
  for (std::size_t i = 0; i < 3 * node::OutboxBoard::kSlots; ++i) {
    ASSERT_TRUE(ranks_[0].keep(1, sent, header));
    EXPECT_TRUE(ranks_[1].recognises(header));
    EXPECT_FALSE(ranks_[0].is_lent(header));
    core::StagedBuffer on_device = staged(to_, segment);
    std::array<std::byte, sizeof(MessageHeader)> here{};
    auto on_host = core::StagedBuffer::untouched(here.data());
    p2p::FetchBatch batch(ranks_[1]);
    EXPECT_OK(
        p2p::fetch_message(ranks_[1], segment, i % 2 == 0 ? on_device : on_host, header, &batch));
    EXPECT_EQ(0u, batch.size());
    EXPECT_EQ(Bytes(sent.size(), 42), i % 2 == 0 ? to_.read(sent.size()) : Bytes(sent.size(), 42));
    if (i % 2 != 0) {
      EXPECT_EQ(sent, here);
    }
  }
  for (std::size_t i = 1; i < node::OutboxBoard::kSlots; ++i)
    EXPECT_TRUE(ranks_[0].keep(1, sent, header));
  EXPECT_FALSE(ranks_[0].keep(1, sent, header));
}

// Messages go by the outbox as before, where they all have room.
TEST(Loans, AreNoneWhereTheyCouldNotBeMovedToHostMemory) {
  EXPECT_EQ(0, in_child([] {
              const rlimit limit{1 << 30, 1 << 30};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              Processes ranks(2);
              ranks.introduce();
              const Buffer from(kMessageBytes);
              ranks.lend(from);
              MessageHeader header;
              const auto room = ranks[0].reserve(1, kMessageBytes, Processes::source(from), header);
              return room.is_lent || room.start == nullptr ? 2 : testing::Test::HasFailure();
            }));
}

// Nobody who has been sent no header takes a message for one, nor is sent one meanwhile.
TEST(Loans, AreNoneWhileAMessageGoesAsItIs) {
  Processes ranks(2);
  EXPECT_TRUE(ranks[0].begin_plain(1));
  ranks.introduce();
  MessageHeader header;
  EXPECT_EQ(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  EXPECT_FALSE(ranks[1].may_hear_from(0));
  EXPECT_TRUE(ranks[0].begin_plain(1));
  ranks[0].end_plain(1);
  EXPECT_EQ(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  ranks[0].end_plain(1);
  EXPECT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  EXPECT_TRUE(ranks[1].may_hear_from(0));
  EXPECT_FALSE(ranks[0].begin_plain(1));
}

TEST_F(Loan, TakesNoRoomUnlessItIsMoved) {
  MessageHeader other;
  ASSERT_NE(nullptr, ranks_[0].reserve(1, kOutboxBytes, {}, other).start);
  ranks_[0].withdraw(other);
  EXPECT_OK(ranks_[0].move(header_));
  const auto none = ranks_[0].reserve(1, kOutboxBytes, {}, other);
  EXPECT_TRUE(none.start == nullptr && !none.is_lent && none.is_full);
  fetch();
  expect_all_room();
  EXPECT_EQ(node::Outbox::Loan::ended, look());
}

// Neither end needs the other to go on, though the outbox be full.
TEST_F(Loan, IsMovedToHostMemoryWhereTheOutboxIsFull) {
  for (const bool is_received_on_host : {false, true}) {
    from_.write(counted(1));
    MessageHeader other;
    ASSERT_NE(nullptr, ranks_[0].reserve(1, kOutboxBytes, {}, other).start);
    EXPECT_EQ(0u, ranks_.spilled_pages(0));
    EXPECT_OK(ranks_[0].move(header_));
    EXPECT_EQ(node::Outbox::Loan::ended, look());
    EXPECT_LT(0u, ranks_.spilled_pages(0));
    from_.write(counted(2));
    Bytes here(kMessageBytes);
    auto on_host = core::StagedBuffer::untouched(here.data());
    core::StagedBuffer on_device = staged(to_, segment_);
    // No kernel reads it from there.
    p2p::FetchBatch batch(ranks_[1]);
    EXPECT_OK(p2p::fetch_message(ranks_[1], segment_, is_received_on_host ? on_host : on_device,
                                 header_, &batch));
    EXPECT_EQ(0u, batch.size());
    EXPECT_EQ(counted(1), is_received_on_host ? here : to_.read(kMessageBytes));
    ranks_[0].withdraw(other);
    expect_all_room();
    EXPECT_EQ(0u, ranks_.spilled_pages(0));
    lend_again();
  }
  EXPECT_EQ(2u, ranks_[0].counters().spilled);
}

TEST_F(Loan, MayBeLongerThanTheOutbox) {
  constexpr std::size_t kLongBytes = 3 * kOutboxBytes + 1;
  Buffer from(kLongBytes);
  const Buffer to(kLongBytes);
  ranks_.lend(from, kLongBytes);
  const core::Segment segment = bytes(kLongBytes);
  for (const bool is_moved : {false, true}) {
    from.write(counted(1, kLongBytes));
    auto posted = p2p::Posted::no;
    MessageHeader header;
    ASSERT_OK(p2p::post_message(ranks_[0], segment, staged(from, segment), 1, header, posted));
    ASSERT_TRUE(ranks_[0].is_lent(header));
    if (is_moved) {
      EXPECT_OK(ranks_[0].move(header));
      from.write(counted(2, kLongBytes));
    }
    core::StagedBuffer buffer = staged(to, segment);
    EXPECT_OK(p2p::fetch_message(ranks_[1], segment, buffer, header));
    EXPECT_EQ(counted(1, kLongBytes), to.read(kLongBytes));
  }
}

// More than one at a time has room there, and none overwrites another.
TEST_F(Loan, IsMovedBesideOthers) {
  MessageHeader other;
  ASSERT_NE(nullptr, ranks_[0].reserve(1, kOutboxBytes, {}, other).start);
  std::vector<MessageHeader> headers{header_};
  for (unsigned char i = 2; i < 40; ++i) {
    // All from the same buffer: what is moved is what lay there then.
    ASSERT_OK(ranks_[0].move(headers.back()));
    from_.write(counted(i));
    lend_again();
    headers.push_back(header_);
  }
  for (std::size_t i = headers.size(); i-- > 0;) {
    header_ = headers[i];
    fetch();
    EXPECT_EQ(counted(static_cast<unsigned char>(i + 1)), to_.read(kMessageBytes));
  }
  ranks_[0].withdraw(other);
  expect_all_room();
}

TEST_F(Loan, IsMovedAndThenReadFromTheOutbox) {
  EXPECT_OK(ranks_[0].move(header_));
  EXPECT_EQ(node::Outbox::Loan::ended, look());
  from_.write(counted(2));
  fetch();
  EXPECT_EQ(counted(1), to_.read(kMessageBytes));
  expect_all_room();
}

TEST_F(Loan, IsNotMovedWhileItIsRead) {
  const std::byte* start = nullptr;
  ASSERT_OK(ranks_[1].begin_fetch(header_, start));
  EXPECT_EQ(node::Outbox::Loan::being_read, look());
  EXPECT_OK(ranks_[0].move(header_));
  EXPECT_EQ(node::Outbox::Loan::being_read, look());
  ranks_[1].end_fetch(header_, node::Outbox::Fetched::yes);
  EXPECT_EQ(node::Outbox::Loan::ended, look());
  EXPECT_EQ(0u, ranks_[0].counters().moved);
}

TEST_F(Loan, IsBeingReadUntilItsBatchIsDone) {
  core::StagedBuffer buffer = staged(to_, segment_);
  p2p::FetchBatch batch(ranks_[1]);
  EXPECT_OK(p2p::fetch_message(ranks_[1], segment_, buffer, header_, &batch));
  EXPECT_EQ(1u, batch.size());
  EXPECT_EQ(node::Outbox::Loan::being_read, look());
  batch.begin();
  bool done = false;
  while (!done) ASSERT_OK(batch.poll(done));
  EXPECT_EQ(counted(1), to_.read(kMessageBytes));
  EXPECT_EQ(node::Outbox::Loan::ended, look());
}

// Its receiver polls a batch from several threads, one of which has yet to begin it.
TEST_F(Loan, IsNotThereBeforeItsBatchHasBegun) {
  core::StagedBuffer buffer = staged(to_, segment_);
  p2p::SharedBatch batch(ranks_[1]);
  EXPECT_OK(p2p::fetch_message(ranks_[1], segment_, buffer, header_, &batch.fetches));
  EXPECT_FALSE(batch.poll());
  EXPECT_EQ(node::Outbox::Loan::being_read, look());
  batch.begin();
  while (!batch.poll()) {
  }
  EXPECT_OK(batch.status());
  EXPECT_EQ(counted(1), to_.read(kMessageBytes));
}

TEST_F(Loan, WaitsForAFewOthersThatComeSoon) {
  constexpr std::size_t kMessages = 8;
  p2p::FetchBatch batch(ranks_[1]);
  for (std::size_t seen = 0; seen < kMessages; ++seen) {
    EXPECT_FALSE(batch.may_grow(seen));
    core::StagedBuffer buffer = staged(to_, segment_);
    EXPECT_OK(p2p::fetch_message(ranks_[1], segment_, buffer, header_, &batch));
    EXPECT_EQ(seen + 1 < kMessages, batch.may_grow(seen));
    lend_again();
  }
  batch.begin();
  for (bool done = false; !done;) ASSERT_OK(batch.poll(done));
}

TEST(Loans, OfALongMessageWaitsForNoOthers) {
  constexpr std::size_t kLongBytes = std::size_t{1} << 20;
  Processes ranks(2);
  ranks.introduce();
  const Buffer from(kLongBytes);
  const Buffer to(kLongBytes);
  ranks.lend(from, kLongBytes);
  const core::Segment segment = bytes(kLongBytes);
  MessageHeader header;
  auto posted = p2p::Posted::no;
  ASSERT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_TRUE(ranks[0].is_lent(header));
  p2p::FetchBatch batch(ranks[1]);
  core::StagedBuffer buffer = staged(to, segment);
  EXPECT_OK(p2p::fetch_message(ranks[1], segment, buffer, header, &batch));
  EXPECT_FALSE(batch.may_grow(0));
  batch.begin();
  for (bool done = false; !done;) ASSERT_OK(batch.poll(done));
}

// Nobody asks after these, as of a program that tests its sends late.
TEST_F(Loan, LeavesItsSlotToOthers) {
  for (std::size_t i = 0; i < 2 * node::OutboxBoard::kSlots; ++i) {
    fetch();
    lend_again();
  }
  EXPECT_EQ(node::Outbox::Loan::untouched, look());
}

// One that takes more than half of it.
TEST_F(Loan, LeavesItsRoomInHostMemoryToOthers) {
  fetch();
  const auto lends = [&](std::size_t size_bytes, MessageHeader& header) {
    return ranks_[0].reserve(1, size_bytes, Processes::source(from_), header).is_lent;
  };
  MessageHeader first;
  std::size_t size_bytes = std::size_t{1} << 46;
  while (size_bytes > kMessageBytes && !lends(size_bytes, first)) size_bytes /= 2;
  ASSERT_GT(size_bytes, kMessageBytes);
  MessageHeader second;
  EXPECT_FALSE(lends(size_bytes, second));
  ranks_[1].dismiss(first);
  EXPECT_TRUE(lends(size_bytes, second));
}

TEST_F(Loan, EndsByItselfAfterAWhile) {
  p2p::LoanEnd end(ranks_[0], header_);
  bool done = false;
  EXPECT_OK(end.poll(done));
  EXPECT_FALSE(done);
  while (!done) ASSERT_OK(end.poll(done));
  EXPECT_EQ(1u, ranks_[0].counters().moved);
}

TEST_F(Loan, StaysWhileItsSenderWaitsForOthers) {
  using Phase = core::Operation::Phase;
  HeaderPort port;
  port.is_taken = true;
  core::Engine engine(port);
  const auto operation = std::make_shared<p2p::LoanOperation>(ranks_[0], header_);
  p2p::TrackedLoan request(0, engine, operation);
  EXPECT_TRUE(request.may_stay(true));
  const auto end = node::Outbox::Clock::now() + std::chrono::milliseconds(5);
  while (node::Outbox::Clock::now() < end) EXPECT_EQ(Phase::issued, operation->advance(port));
  EXPECT_EQ(0u, ranks_[0].counters().moved);
  EXPECT_TRUE(request.may_stay(false));
  while (operation->advance(port) != Phase::done) {
  }
  EXPECT_EQ(1u, ranks_[0].counters().moved);
}

// It would go to host memory, which takes far longer.
TEST_F(Loan, GetsMoreTimeWhereItsReceiverReachesNoRoomNearBy) {
  constexpr std::size_t kTooLongBytes = 2 * kOutboxBytes;
  Processes ranks(3);
  ranks.introduce();
  ASSERT_TRUE(ranks[2].attach(device::host_runtime(), 0));
  const Buffer from(kTooLongBytes);
  std::chrono::nanoseconds patience[3]{};
  for (const int receiver : {1, 2}) {
    MessageHeader header;
    for (int call = 0; call < 2; ++call) {
      (void)ranks[0].reserve(receiver, kTooLongBytes, Processes::source(from), header);
      ranks[0].withdraw(header);
      ranks[receiver].follow();
    }
    ASSERT_TRUE(ranks[0].reserve(receiver, kMessageBytes, Processes::source(from), header).is_lent);
    patience[receiver] = ranks[0].patience(header);
    ranks[0].withdraw(header);
  }
  EXPECT_GT(patience[2], patience[1]);
}

TEST_F(Loan, EndsWhereItsHeaderIsCancelled) {
  using Phase = core::Operation::Phase;
  for (const bool is_taken : {true, false}) {
    HeaderPort port;
    core::Engine engine(port);
    const auto operation = std::make_shared<p2p::LoanOperation>(ranks_[0], header_);
    p2p::TrackedLoan request(0, engine, operation);
    EXPECT_EQ(Phase::issued, operation->advance(port));
    port.is_taken = is_taken;
    EXPECT_TRUE(request.cancel());
    if (is_taken) fetch();
    EXPECT_EQ(Phase::done, operation->advance(port));
    EXPECT_OK(request.finish({}));
    core::MessageInfo info;
    EXPECT_EQ(!is_taken, request.message(info) && info.is_cancelled);
    EXPECT_FALSE(ranks_[0].is_lent(header_));
    EXPECT_FALSE(ranks_[1].recognises(header_));
    if (!is_taken) break;
    lend_again();
  }
  expect_all_room();
}

TEST_F(Loan, IsNotWaitedForByARankThatLeaves) {
  using Phase = core::Operation::Phase;
  HeaderPort port;
  p2p::LoanOperation operation(ranks_[0], header_);
  EXPECT_EQ(Phase::issued, operation.advance(port));
  ranks_[0].leave();
  EXPECT_EQ(Phase::done, operation.advance(port));
  fetch();
  EXPECT_EQ(counted(1), to_.read(kMessageBytes));
}

TEST_F(Loan, BothEndsLearnThatItCouldNotBeRead) {
  const std::byte* start = nullptr;
  ASSERT_OK(ranks_[1].begin_fetch(header_, start));
  ranks_[1].end_fetch(header_, node::Outbox::Fetched::no);
  EXPECT_FALSE(ranks_[1].recognises(header_));
  auto loan = node::Outbox::Loan::untouched;
  EXPECT_CODE(device_error, ranks_[0].look(header_, loan));
  EXPECT_EQ(node::Outbox::Loan::ended, loan);
  expect_all_room();
}

TEST_F(Loan, EndsWhereTheMessageIsTooLong) {
  const core::Segment room = bytes(kMessageBytes - 1);
  core::StagedBuffer buffer = staged(to_, room);
  EXPECT_EQ(StatusCode::truncated, p2p::fetch_message(ranks_[1], room, buffer, header_).code());
  EXPECT_EQ(node::Outbox::Loan::ended, look());
  expect_all_room();
}

TEST_F(Loan, OfWhatWasFreedIsTakenBackThoughNothingIsSentAnyMore) {
  fetch();
  EXPECT_EQ(node::Outbox::Loan::ended, look());
  EXPECT_FALSE(ranks_[1].has_news());
  from_.free();
  for (std::size_t look = 0; look < node::Offers::kCallsPerLook * node::Board::kOffers; ++look)
    ranks_[0].follow();
  EXPECT_TRUE(ranks_[1].has_news());
}

TEST_F(Loan, HoldsItsOfferThoughItIsLongIdle) {
  // Allocations that want an offer of their own, more than there are.
  std::vector<std::unique_ptr<Buffer>> others;
  for (std::size_t i = 0; i < node::Board::kOffers; ++i)
    others.push_back(std::make_unique<Buffer>(kMessageBytes));
  for (std::uint64_t call = 0; call < 2 * node::Offers::kIdleCalls; ++call) {
    MessageHeader header;
    const Buffer& other = *others[call / 2 % others.size()];
    (void)ranks_[0].reserve(1, 1, Processes::source(other), header);
    ranks_[0].withdraw(header);
    ranks_[1].follow();
    auto ended = node::Outbox::Loan::untouched;
    EXPECT_OK(ranks_[0].look(header, ended));
  }
  fetch();
  EXPECT_EQ(counted(1), to_.read(kMessageBytes));
}

TEST(Loans, EachGetsTimeForTheOnesBeforeIt) {
  using std::chrono::hours;
  Processes ranks(2);
  const auto first = ranks[0].begin_wait(1, hours(1));
  const auto second = ranks[0].begin_wait(1, hours(2));
  EXPECT_LE(first + hours(2), second);
  ranks[0].end_wait(1, hours(1));
  EXPECT_GT(second + hours(1), ranks[0].begin_wait(1, hours(1)));
}

TEST_F(Loan, IsNotCountedOnceItIsOver) {
  using Clock = node::Outbox::Clock;
  p2p::LoanEnd end(ranks_[0], header_);
  bool done = false;
  EXPECT_OK(end.poll(done));
  EXPECT_FALSE(done);
  fetch();
  EXPECT_OK(end.poll(done));
  EXPECT_TRUE(done);
  const auto others_end = ranks_[0].begin_wait(1, {});
  EXPECT_LE(others_end, Clock::now());
}

}  // namespace
}  // namespace accord::test
