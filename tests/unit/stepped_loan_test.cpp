// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages in runs of equal steps that their sender lends to their receiver: fetched as they lie,
// and packed where they are moved out of the way.
#include "outbox_world.h"

namespace accord::test {
namespace {

// Groups of four bytes with gaps between them, as of a column: lent as they lie.
class SteppedLoan : public ::testing::Test {
 protected:
  void SetUp() override {
    ranks_.introduce();
    ranks_.lend(from_, kSpanBytes);
    from_.write(counted(1, kSpanBytes));
    auto posted = p2p::Posted::no;
    ASSERT_OK(p2p::post_message(ranks_[0], column_, staged(from_, column_), 1, header_, posted));
    ASSERT_EQ(p2p::Posted::yes, posted);
    ASSERT_TRUE(ranks_[0].is_lent(header_));
  }

  static core::Segment column(std::ptrdiff_t step_bytes) {
    return {
        std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, kGroup, 0}}, step_bytes),
        kMessageBytes / kGroup, 0};
  }
  // The message in the layout of a segment, and gaps as they were.
  static Bytes expected(const core::Segment& to, std::size_t size_bytes, unsigned char gap) {
    const Bytes sent = counted(1, kSpanBytes);
    Bytes made(size_bytes, gap);
    for (std::size_t i = 0; i < kMessageBytes; ++i)
      made[i / kGroup * static_cast<std::size_t>(to.type->extent_bytes()) + i % kGroup] =
          sent[i / kGroup * kStepBytes + i % kGroup];
    return made;
  }
  void expect_fetched(const core::Segment& to, bool in_a_batch) {
    const std::size_t size_bytes =
        static_cast<std::size_t>(to.type->extent_bytes()) * (kMessageBytes / kGroup);
    to_.write(Bytes(size_bytes, 0x55));
    core::StagedBuffer buffer = staged(to_, to);
    p2p::FetchBatch batch(ranks_[1]);
    EXPECT_OK(p2p::fetch_message(ranks_[1], to, buffer, header_, in_a_batch ? &batch : nullptr));
    EXPECT_EQ(in_a_batch ? 1u : 0u, batch.size());
    if (in_a_batch) batch.begin();
    for (bool done = !in_a_batch; !done;) ASSERT_OK(batch.poll(done));
    EXPECT_EQ(expected(to, size_bytes, 0x55), to_.read(size_bytes));
    auto loan = node::Outbox::Loan::untouched;
    EXPECT_OK(ranks_[0].look(header_, loan));
    EXPECT_EQ(node::Outbox::Loan::ended, loan);
  }

  static constexpr std::size_t kGroup = 4;
  static constexpr std::size_t kStepBytes = 12;
  static constexpr std::size_t kSpanBytes = kMessageBytes / kGroup * kStepBytes;
  Processes ranks_{2};
  Buffer from_{kSpanBytes};
  Buffer to_{kSpanBytes};
  const core::Segment column_ = column(kStepBytes);
  MessageHeader header_;
};

TEST_F(SteppedLoan, IsFetchedAsItLies) { expect_fetched(column_, true); }
TEST_F(SteppedLoan, IsFetchedIntoOnePiece) { expect_fetched(column(kGroup), true); }
TEST_F(SteppedLoan, IsFetchedIntoOtherSteps) { expect_fetched(column(2 * kGroup), false); }

TEST_F(SteppedLoan, IsFetchedToHostMemory) {
  Bytes host(kSpanBytes, 0x55);
  core::StagedBuffer buffer = core::StagedBuffer::untouched(host.data());
  EXPECT_OK(p2p::fetch_message(ranks_[1], column_, buffer, header_));
  EXPECT_EQ(expected(column_, kSpanBytes, 0x55), host);
}

// It is packed on its way.
TEST_F(SteppedLoan, IsMovedOutOfTheWay) {
  EXPECT_OK(ranks_[0].move(header_));
  EXPECT_EQ(1u, ranks_[0].counters().moved);
  from_.write(Bytes(kSpanBytes, 0));
  expect_fetched(column_, true);
}

TEST_F(SteppedLoan, IsMovedToHostMemoryWhereThereIsNoRoom) {
  MessageHeader all;
  ASSERT_NE(nullptr, ranks_[0].reserve(1, kOutboxBytes, {}, all).start);
  EXPECT_OK(ranks_[0].move(header_));
  EXPECT_EQ(1u, ranks_[0].counters().spilled);
  from_.write(Bytes(kSpanBytes, 0));
  expect_fetched(column_, false);
}

}  // namespace
}  // namespace accord::test
