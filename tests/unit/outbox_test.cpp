// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that wait in their sender's outbox or are lent to their receiver: headers only to those
// who can fetch, recognised by nobody else and only once, room that comes back, what a receiver
// makes of them, and what both ends learn of an error.
#include <cstring>

#include "core/device_message.h"
#include "core/loan.h"
#include "forwarding_runtime.h"
#include "node_world.h"

namespace accord::test {
namespace {

using node::MessageHeader;

constexpr std::size_t kOutboxBytes = 16384;
constexpr std::size_t kMessageBytes = 4096;

// Processes of a node, all here.
class Processes {
 public:
  explicit Processes(int size) {
    std::vector<std::shared_ptr<node::Group>> groups;
    std::vector<node::Record> records(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      groups.emplace_back(new node::Group, node::Group::retire);
      EXPECT_OK(groups.back()->prepare(rank, size, device::host_runtime(), -1,
                                       {.of_messages = true},
                                       records[static_cast<std::size_t>(rank)]));
    }
    for (const auto& group : groups) {
      bool sent = false;
      EXPECT_OK(group->accept(records));
      for (int tries = 0; tries < 100 && !sent; ++tries) EXPECT_OK(group->send(sent));
      EXPECT_TRUE(sent);
    }
    for (const auto& group : groups) {
      EXPECT_OK(group->open());
      outboxes_.push_back(std::make_unique<node::Outbox>(group, kOutboxBytes));
    }
  }
  ~Processes() {
    for (const auto& outbox : outboxes_) outbox->close();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  node::Outbox& operator[](int rank) { return *outboxes_[static_cast<std::size_t>(rank)]; }

  // Rank 0 can send rank 1 headers from here on.
  void introduce(device::DeviceRuntime& receivers_runtime = device::host_runtime()) {
    MessageHeader header;
    EXPECT_TRUE((*this)[0].attach(device::host_runtime(), 0));
    EXPECT_TRUE((*this)[1].attach(receivers_runtime, 0));
    EXPECT_FALSE((*this)[1].has_news());
    for (int call = 0; call < 2; ++call) EXPECT_FALSE(can_send(header));
    EXPECT_FALSE((*this)[1].may_hear_from(0));
    EXPECT_TRUE((*this)[1].has_news());
    (*this)[1].follow();
    EXPECT_FALSE((*this)[1].has_news());
    EXPECT_TRUE((*this)[1].may_hear_from(0));
  }
  // The receiver opens `buffer`, so that messages there are lent from here on.
  void lend(const Buffer& buffer) {
    for (int call = 0; call < 2; ++call) {
      MessageHeader header;
      EXPECT_FALSE((*this)[0].reserve(1, kMessageBytes, source(buffer), header).is_lent);
      (*this)[0].withdraw(header);
    }
    (*this)[1].follow();
  }
  static node::Outbox::Source source(const Buffer& buffer) {
    return {.start = static_cast<const std::byte*>(buffer.address()),
            .memory = device::classify(buffer.address())};
  }

 private:
  bool can_send(MessageHeader& header) {
    return outboxes_[0]->reserve(1, kMessageBytes, {}, header).start != nullptr;
  }

  std::vector<std::unique_ptr<node::Outbox>> outboxes_;
};

core::Segment bytes(std::size_t count) { return {core::Typemap::contiguous(1), count, 0}; }

core::StagedBuffer staged(const Buffer& buffer, const core::Segment& segment) {
  auto made = core::StagedBuffer::staged(buffer.address(), device::classify(buffer.address()));
  made.writes(segment);
  EXPECT_OK(made.open());
  return made;
}

TEST(Outbox, SendsNoHeaderBeforeTheReceiverHasOpenedIt) {
  Processes ranks(3);
  ranks.introduce();
  MessageHeader header;
  EXPECT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  EXPECT_EQ(nullptr, ranks[0].reserve(2, kMessageBytes, {}, header).start);
}

TEST(Outbox, OnlyTheReceiverRecognisesAHeaderAndOnlyOnce) {
  Processes ranks(3);
  ranks.introduce();
  MessageHeader header;
  ASSERT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  EXPECT_TRUE(ranks[1].recognises(header));
  EXPECT_FALSE(ranks[0].recognises(header));
  EXPECT_FALSE(ranks[2].recognises(header));
  const auto changed = [&](auto change) {
    MessageHeader other = header;
    change(other);
    return ranks[1].recognises(other);
  };
  EXPECT_FALSE(changed([](MessageHeader& other) { other.cookie ^= 1; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { other.ticket ^= 1; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { ++other.generation; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { other.sender = 3; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { other.slot = node::OutboxBoard::kSlots; }));
  ranks[1].dismiss(header);
  EXPECT_FALSE(ranks[1].recognises(header));
}

TEST(Outbox, IsGivenAMessageBackByTheBeginningOfItsHeader) {
  Processes ranks(3);
  ranks.introduce();
  MessageHeader header;
  ASSERT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, header).start);
  const auto cut_off = [&](int rank, std::size_t room_bytes, unsigned char wrong = 0) {
    Bytes arrived(room_bytes);
    std::memcpy(arrived.data(), &header, std::min(room_bytes, sizeof header));
    arrived[0] ^= wrong;
    core::dismiss_cut_off(ranks[rank], bytes(room_bytes), arrived.data());
    return !ranks[1].recognises(header);
  };
  EXPECT_FALSE(cut_off(1, 7));
  EXPECT_FALSE(cut_off(1, 8, 1));
  EXPECT_FALSE(cut_off(2, 8));
  EXPECT_FALSE(cut_off(1, sizeof header));
  EXPECT_TRUE(cut_off(1, 8));
  EXPECT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, header).start);
  EXPECT_TRUE(cut_off(1, sizeof header - 1));
}

TEST(Outbox, HasRoomAgainForWhatWasTakenOrWithdrawn) {
  Processes ranks(2);
  ranks.introduce();
  std::vector<MessageHeader> headers(kOutboxBytes / kMessageBytes);
  for (MessageHeader& header : headers)
    ASSERT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  MessageHeader more;
  const auto reserve = [&](std::size_t size_bytes) {
    return ranks[0].reserve(1, size_bytes, {}, more);
  };
  EXPECT_EQ(nullptr, reserve(1).start);
  EXPECT_TRUE(reserve(1).is_full);
  ranks[0].give_up();
  EXPECT_FALSE(reserve(1).is_full);
  ranks[1].dismiss(headers[1]);
  EXPECT_EQ(nullptr, reserve(kMessageBytes + 1).start);
  EXPECT_TRUE(reserve(kMessageBytes + 1).is_full);
  ranks[0].withdraw(headers[2]);
  ASSERT_NE(nullptr, reserve(2 * kMessageBytes).start);
  EXPECT_FALSE(ranks[1].recognises(headers[1]));
  EXPECT_TRUE(ranks[1].recognises(more));
  EXPECT_FALSE(reserve(kOutboxBytes + 1).is_full);
}

TEST(Outbox, BringsAMessageToDeviceAndHost) {
  Processes ranks(2);
  ranks.introduce();
  Bytes sent(kMessageBytes);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 7);
  Buffer from(kMessageBytes);
  const Buffer to(kMessageBytes + 1);
  from.write(sent);
  const core::Segment segment = bytes(kMessageBytes);
  const core::Segment room = bytes(kMessageBytes + 1);

  MessageHeader header;
  auto posted = core::Posted::no;
  EXPECT_OK(core::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(core::Posted::yes, posted);
  core::StagedBuffer on_device = staged(to, room);
  std::memcpy(on_device.host(), &header, sizeof header);
  MessageHeader found;
  EXPECT_FALSE(core::find_header(ranks[1], room, on_device.host(), sizeof header - 1, found));
  ASSERT_TRUE(core::find_header(ranks[1], room, on_device.host(), sizeof header, found));
  EXPECT_OK(core::fetch_message(ranks[1], room, on_device, found));
  EXPECT_EQ(sent, to.read(kMessageBytes));
  EXPECT_FALSE(core::find_header(ranks[1], room, on_device.host(), sizeof header, found));

  EXPECT_OK(core::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(core::Posted::yes, posted);
  Bytes host(kMessageBytes);
  std::memcpy(host.data(), &header, sizeof header);
  core::StagedBuffer on_host = core::StagedBuffer::untouched(host.data());
  EXPECT_OK(core::fetch_message(ranks[1], segment, on_host, header));
  EXPECT_EQ(sent, host);
}

TEST(Outbox, LeavesNoHeaderBehindWhereTheMessageIsTooLong) {
  Processes ranks(2);
  ranks.introduce();
  const Buffer from(kMessageBytes);
  const core::Segment segment = bytes(kMessageBytes);
  MessageHeader header;
  auto posted = core::Posted::no;
  EXPECT_OK(core::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(core::Posted::yes, posted);
  Bytes host(kMessageBytes - 1, 0x55);
  std::memcpy(host.data(), &header, sizeof header);
  core::StagedBuffer buffer = core::StagedBuffer::untouched(host.data());
  const core::Segment room = bytes(host.size());
  EXPECT_EQ(StatusCode::truncated, core::fetch_message(ranks[1], room, buffer, header).code());
  Bytes expected(host.size(), 0x55);
  std::fill_n(expected.begin(), sizeof header, 0);
  EXPECT_EQ(expected, host);
  EXPECT_FALSE(ranks[1].recognises(header));
}

Bytes counted(unsigned char first) {
  Bytes made(kMessageBytes);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<unsigned char>(first + i * 7);
  return made;
}

// A message of rank 0 to rank 1 that is lent.
class Loan : public ::testing::Test {
 protected:
  void SetUp() override {
    ranks_.introduce();
    ranks_.lend(from_);
    from_.write(counted(1));
    auto posted = core::Posted::no;
    ASSERT_OK(core::post_message(ranks_[0], segment_, staged(from_, segment_), 1, header_, posted));
    ASSERT_EQ(core::Posted::yes, posted);
    ASSERT_TRUE(ranks_[0].is_lent(header_));
  }

  node::Outbox::Loan look() {
    auto loan = node::Outbox::Loan::ended;
    EXPECT_OK(ranks_[0].look(header_, loan));
    return loan;
  }
  void fetch() {
    core::StagedBuffer buffer = staged(to_, segment_);
    EXPECT_OK(core::fetch_message(ranks_[1], segment_, buffer, header_));
  }
  // All of the outbox, that is, no message is left.
  void expect_all_room() {
    MessageHeader all;
    EXPECT_NE(nullptr, ranks_[0].reserve(1, kOutboxBytes, {}, all).start);
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

TEST_F(Loan, GivesItsRoomBackOnceItIsRead) {
  MessageHeader other;
  // What is lent has room to be moved to, which may be waited for.
  const auto none = ranks_[0].reserve(1, kOutboxBytes, {}, other);
  EXPECT_TRUE(none.start == nullptr && !none.is_lent && none.is_full);
  fetch();
  expect_all_room();
  EXPECT_EQ(node::Outbox::Loan::ended, look());
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

// By something else than the receiver's copy.
TEST_F(Loan, IsKeptWhileItsSenderSendsIt) {
  std::size_t size_bytes = 0;
  const auto begin = [&](std::uint32_t generation) {
    return ranks_[0].begin_sending(header_.slot, generation, size_bytes);
  };
  EXPECT_EQ(nullptr, begin(header_.generation));
  const std::byte* start = nullptr;
  ASSERT_OK(ranks_[1].begin_fetch(header_, start));
  EXPECT_EQ(nullptr, begin(header_.generation + 1));
  EXPECT_EQ(from_.address(), begin(header_.generation));
  EXPECT_EQ(kMessageBytes, size_bytes);
  ranks_[1].end_fetch(header_, node::Outbox::Fetched::yes);
  EXPECT_EQ(node::Outbox::Loan::being_read, look());
  EXPECT_TRUE(ranks_[0].has_waiting());
  EXPECT_EQ(node::Outbox::Loan::being_read, look());
  ranks_[0].end_sending(header_.slot);
  EXPECT_EQ(node::Outbox::Loan::ended, look());
  EXPECT_FALSE(ranks_[0].has_waiting());
  expect_all_room();
}

TEST_F(Loan, IsSentFromTheOutboxOnceItIsMoved) {
  EXPECT_OK(ranks_[0].move(header_));
  from_.write(counted(2));
  const std::byte* start = nullptr;
  ASSERT_OK(ranks_[1].begin_fetch(header_, start));
  std::size_t size_bytes = 0;
  const std::byte* const sent =
      ranks_[0].begin_sending(header_.slot, header_.generation, size_bytes);
  ASSERT_EQ(kMessageBytes, size_bytes);
  Bytes found(kMessageBytes);
  const device::Copy copy{.dst = found.data(), .src = sent, .row_bytes = kMessageBytes};
  EXPECT_OK(device::host_runtime().copy(0, {&copy, 1}));
  EXPECT_EQ(counted(1), found);
  ranks_[1].end_fetch(header_, node::Outbox::Fetched::yes);
  MessageHeader other;
  EXPECT_TRUE(ranks_[0].reserve(1, kOutboxBytes, {}, other).is_full);
  ranks_[0].end_sending(header_.slot);
  expect_all_room();
}

TEST_F(Loan, IsCopiedUnlessItIsBrought) {
  for (const bool is_brought : {true, false}) {
    const Bytes before = to_.read(kMessageBytes);
    core::StagedBuffer buffer = staged(to_, segment_);
    void* place = nullptr;
    auto loan = node::Outbox::Loan::ended;
    EXPECT_OK(core::fetch_message(ranks_[1], segment_, buffer, header_, [&](void* to) {
      place = to;
      loan = look();
      return is_brought;
    }));
    EXPECT_EQ(to_.address(), place);
    EXPECT_EQ(node::Outbox::Loan::being_read, loan);
    EXPECT_EQ(is_brought ? before : counted(1), to_.read(kMessageBytes));
    EXPECT_EQ(node::Outbox::Loan::ended, look());
    auto posted = core::Posted::no;
    ASSERT_OK(core::post_message(ranks_[0], segment_, staged(from_, segment_), 1, header_, posted));
    ASSERT_TRUE(ranks_[0].is_lent(header_));
  }
}

TEST_F(Loan, EndsByItselfAfterAWhile) {
  core::LoanEnd end(ranks_[0], header_);
  bool done = false;
  EXPECT_OK(end.poll(done));
  EXPECT_FALSE(done);
  while (!done) ASSERT_OK(end.poll(done));
  EXPECT_EQ(1u, ranks_[0].counters().moved);
}

// A host MPI with one header under way, that its receiver takes when it is told to, unless it is
// cancelled before.
class HeaderPort final : public core::HostPort {
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
  Status peek(core::HostRequest, bool&) override { return {}; }
  Status grequest_start(core::HostRequest&) override { return {}; }
  void grequest_complete(core::HostRequest) override {}
  Status placeholder_init(core::HostRequest&, int&) override { return {}; }
  void placeholder_complete(int) override {}
  void placeholder_release(int) override {}
  void pause() override {}
};

TEST_F(Loan, EndsWhereItsHeaderIsCancelled) {
  using Phase = core::Operation::Phase;
  for (const bool is_taken : {true, false}) {
    HeaderPort port;
    core::Engine engine(port);
    const auto operation = std::make_shared<core::LoanOperation>(ranks_[0], header_);
    core::TrackedLoan request(0, engine, operation);
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
    auto posted = core::Posted::no;
    ASSERT_OK(core::post_message(ranks_[0], segment_, staged(from_, segment_), 1, header_, posted));
  }
  expect_all_room();
}

TEST_F(Loan, IsNotWaitedForByARankThatLeaves) {
  using Phase = core::Operation::Phase;
  HeaderPort port;
  core::LoanOperation operation(ranks_[0], header_);
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
  MessageHeader other;
  // What is lent has room to be moved to, which may be waited for.
  const auto none = ranks_[0].reserve(1, kOutboxBytes, {}, other);
  EXPECT_TRUE(none.start == nullptr && !none.is_lent && none.is_full);
  auto loan = node::Outbox::Loan::untouched;
  EXPECT_CODE(device_error, ranks_[0].look(header_, loan));
  EXPECT_EQ(node::Outbox::Loan::ended, loan);
  expect_all_room();
}

TEST_F(Loan, EndsWhereTheMessageIsTooLong) {
  const core::Segment room = bytes(kMessageBytes - 1);
  core::StagedBuffer buffer = staged(to_, room);
  EXPECT_EQ(StatusCode::truncated, core::fetch_message(ranks_[1], room, buffer, header_).code());
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

TEST(Outbox, BothEndsLearnThatAMessageCouldNotBePacked) {
  Processes ranks(2);
  ranks.introduce();
  const Buffer from(kMessageBytes / 2);
  const Buffer to(kMessageBytes);
  const core::Segment segment = bytes(kMessageBytes);
  MessageHeader header;
  auto posted = core::Posted::no;
  EXPECT_FALSE(
      core::post_message(ranks[0], segment, staged(from, segment), 1, header, posted).ok());
  ASSERT_EQ(core::Posted::yes, posted);
  MessageHeader all;
  EXPECT_TRUE(ranks[0].reserve(1, kOutboxBytes, {}, all).is_full);
  EXPECT_TRUE(ranks[1].recognises(header));
  core::StagedBuffer buffer = staged(to, segment);
  EXPECT_CODE(device_error, core::fetch_message(ranks[1], segment, buffer, header));
  EXPECT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, all).start);
}

class CountingRuntime final : public ForwardingRuntime {
 public:
  int rows = 0;
  int calls = 0;

  Status copy(int device, std::span<const device::Copy> copies) override {
    ++calls;
    for (const device::Copy& one : copies) rows += static_cast<int>(one.rows);
    return ForwardingRuntime::copy(device, copies);
  }
};

TEST(Outbox, BringsAMessageToScatteredHostMemoryByOneCopy) {
  static CountingRuntime& runtime = *new CountingRuntime;
  Processes ranks(2);
  ranks.introduce(runtime);
  Buffer from(kMessageBytes);
  from.write(counted(3));
  const core::Segment segment = bytes(kMessageBytes);
  MessageHeader header;
  auto posted = core::Posted::no;
  EXPECT_OK(core::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(core::Posted::yes, posted);
  // Every other group of four bytes.
  const core::Segment scattered{
      std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, 4, 0}}, 8),
      kMessageBytes / 4, 0};
  Bytes host(2 * kMessageBytes, 0x55);
  core::StagedBuffer buffer = core::StagedBuffer::untouched(host.data());
  runtime.rows = 0;
  EXPECT_OK(core::fetch_message(ranks[1], scattered, buffer, header));
  EXPECT_EQ(1, runtime.rows);
  Bytes expected(host.size(), 0x55);
  for (std::size_t i = 0; i < kMessageBytes; ++i) expected[i / 4 * 8 + i % 4] = counted(3)[i];
  EXPECT_EQ(expected, host);
}

TEST(Outbox, FetchesSeveralMessagesTogether) {
  constexpr std::size_t kMessages = kOutboxBytes / kMessageBytes;
  static CountingRuntime& runtime = *new CountingRuntime;
  Processes ranks(2);
  ranks.introduce(runtime);
  Buffer from(kMessageBytes);
  const core::Segment segment = bytes(kMessageBytes);
  core::FetchBatch batch(ranks[1]);
  std::vector<std::unique_ptr<Buffer>> to;
  MessageHeader header;
  for (std::size_t i = 0; i < kMessages; ++i) {
    from.write(counted(static_cast<unsigned char>(i)));
    auto posted = core::Posted::no;
    EXPECT_OK(core::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
    ASSERT_EQ(core::Posted::yes, posted);
    to.push_back(std::make_unique<Buffer>(kMessageBytes));
    device::PointerInfo where = device::classify(to.back()->address());
    where.runtime = &runtime;
    auto buffer = core::StagedBuffer::staged(to.back()->address(), where);
    EXPECT_OK(core::fetch_message(ranks[1], segment, buffer, header, nullptr, &batch));
  }
  EXPECT_EQ(kMessages, batch.size());
  EXPECT_TRUE(ranks[0].reserve(1, 1, {}, header).is_full);
  runtime.calls = 0;
  EXPECT_OK(batch.run());
  EXPECT_EQ(1, runtime.calls);
  EXPECT_EQ(0u, batch.size());
  for (std::size_t i = 0; i < kMessages; ++i)
    EXPECT_EQ(counted(static_cast<unsigned char>(i)), to[i]->read(kMessageBytes));
  EXPECT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, header).start);
}

TEST(Outbox, GivesEachLoanTimeForTheOnesBeforeIt) {
  using std::chrono::hours;
  Processes ranks(2);
  const auto first = ranks[0].begin_wait(hours(1));
  const auto second = ranks[0].begin_wait(hours(2));
  EXPECT_LE(first + hours(2), second);
  ranks[0].end_wait(hours(1));
  EXPECT_GT(second + hours(1), ranks[0].begin_wait(hours(1)));
}

TEST_F(Loan, IsNotCountedOnceItIsOver) {
  using Clock = node::Outbox::Clock;
  core::LoanEnd end(ranks_[0], header_);
  bool done = false;
  EXPECT_OK(end.poll(done));
  EXPECT_FALSE(done);
  fetch();
  EXPECT_OK(end.poll(done));
  EXPECT_TRUE(done);
  const auto others_end = ranks_[0].begin_wait({});
  EXPECT_LE(others_end, Clock::now());
}

TEST(QuickCopy, CopiesAnyNumberOfBytesAgainAndAgain) {
  node::QuickCopy quick;
  for (const std::size_t size_bytes : {std::size_t{1}, kMessageBytes, node::QuickCopy::kBytesMax}) {
    Bytes sent(size_bytes);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 7 + 1);
    Buffer from(size_bytes);
    from.write(sent);
    const Buffer to(size_bytes);
    for (int round = 0; round < 3; ++round) {
      bool done = false;
      EXPECT_OK(quick.run(device::host_runtime(), 0,
                          {.dst = to.address(), .src = from.address(), .row_bytes = size_bytes},
                          done));
      EXPECT_TRUE(done);
      EXPECT_EQ(sent, to.read(size_bytes));
      std::ranges::reverse(sent);
      from.write(sent);
    }
  }
}

TEST(QuickCopy, LeavesAloneWhatItCannotCopy) {
  node::QuickCopy quick;
  const Buffer from(2 * node::QuickCopy::kBytesMax);
  const Buffer to(kMessageBytes);
  Bytes host(kMessageBytes);
  const auto is_copied = [&](void* dst, const void* src, std::size_t size_bytes) {
    bool done = true;
    EXPECT_OK(quick.run(device::host_runtime(), 0,
                        {.dst = dst, .src = src, .row_bytes = size_bytes}, done));
    return done;
  };
  EXPECT_TRUE(is_copied(to.address(), from.address(), kMessageBytes));
  EXPECT_FALSE(is_copied(to.address(), from.address(), kMessageBytes + 1));
  EXPECT_FALSE(is_copied(host.data(), from.address(), kMessageBytes));
  EXPECT_FALSE(is_copied(to.address(), host.data(), kMessageBytes));
  const Buffer large(2 * node::QuickCopy::kBytesMax);
  EXPECT_FALSE(is_copied(large.address(), from.address(), large.size_bytes()));
}

}  // namespace
}  // namespace accord::test
