// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that wait in their sender's outbox: headers only to those who can fetch, recognised by
// nobody else and only once, room that comes back, what a receiver makes of them, and what both
// ends learn of an error.
#include <chrono>
#include <thread>

#include "counting_runtime.h"
#include "outbox_world.h"

namespace accord::test {
namespace {

TEST(Outbox, SendsNoHeaderBeforeTheReceiverHasOpenedIt) {
  Processes ranks(3);
  ranks.introduce();
  MessageHeader header;
  EXPECT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  EXPECT_EQ(nullptr, ranks[0].reserve(2, kMessageBytes, {}, header).start);
}

TEST(Outbox, IsNotOpenedByAReceiverThatSends) {
  Processes ranks(2);
  EXPECT_TRUE(ranks[0].attach(device::host_runtime(), 0));
  EXPECT_TRUE(ranks[1].attach(device::host_runtime(), 0));
  MessageHeader header;
  for (int call = 0; call < 40; ++call) {
    EXPECT_EQ(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
    EXPECT_EQ(nullptr, ranks[1].reserve(0, kMessageBytes, {}, header).start);
  }
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
    const auto ticket = p2p::cut_off_ticket(bytes(room_bytes), arrived.data());
    if (ticket) ranks[rank].dismiss(*ticket);
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

TEST(Outbox, KnowsAShortMessageByItsTicket) {
  Processes ranks(3);
  ranks.introduce();
  const auto post = [&](std::size_t size_bytes) {
    MessageHeader header;
    EXPECT_NE(nullptr, ranks[0].reserve(1, size_bytes, {}, header).start);
    return header;
  };
  const auto completed = [&](int rank, std::uint64_t ticket) {
    MessageHeader found;
    found.ticket = ticket;
    return ranks[rank].completes(found) ? found.size_bytes : 0;
  };
  MessageHeader sent = post(12);
  EXPECT_EQ(MessageHeader::kTicketBytes, sent.sent_bytes());
  EXPECT_EQ(12U, completed(1, sent.ticket));
  EXPECT_EQ(0U, completed(2, sent.ticket));
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_EQ(0U, completed(1, sent.ticket ^ std::uint64_t{1} << bit)) << bit;
  ranks[0].fetch_by_engine(sent);
  MessageHeader found;
  found.ticket = sent.ticket;
  ASSERT_TRUE(ranks[1].completes(found));
  EXPECT_EQ(node::Fetch::by_engine, found.fetch);
  ranks[1].dismiss(found);
  EXPECT_EQ(0U, completed(1, sent.ticket));
  // Of a longer one the whole header comes.
  EXPECT_EQ(0U, completed(1, post(sizeof(MessageHeader)).ticket));
}

// As the neighbour of a periodic grid that is one process wide does.
TEST(Outbox, BringsARankItsOwnMessages) {
  Processes ranks(2);
  ranks.introduce();
  const Bytes sent(kMessageBytes, 5);
  MessageHeader header;
  const node::Outbox::Room room = ranks[0].reserve(0, kMessageBytes, {}, header);
  ASSERT_NE(nullptr, room.start);
  const device::Copy fill{.dst = room.start, .src = sent.data(), .row_bytes = kMessageBytes};
  EXPECT_OK(device::host_runtime().copy(0, {&fill, 1}));
  EXPECT_TRUE(ranks[0].recognises(header));
  EXPECT_FALSE(ranks[1].recognises(header));
  const std::byte* start = nullptr;
  ASSERT_OK(ranks[0].begin_fetch(header, start));
  EXPECT_EQ(room.start, start);
  const Buffer to(kMessageBytes);
  const device::Copy copy{.dst = to.address(), .src = start, .row_bytes = kMessageBytes};
  EXPECT_OK(ranks[0].copy({&copy, 1}));
  EXPECT_EQ(sent, to.read(kMessageBytes));
  ranks[0].end_fetch(header, node::Outbox::Fetched::yes);
  EXPECT_FALSE(ranks[0].recognises(header));
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

// It is given back where no message has waited for a while, however long ago it was made.
TEST(Outbox, KeepsMemoryThatAMessageHasWaitedInSince) {
  using Clock = node::Outbox::Clock;
  Processes ranks(2);
  ranks.introduce();
  const Clock::time_point made = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  MessageHeader header;
  ASSERT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  ranks[1].dismiss(header);
  ranks[0].tidy(Clock::now() - made);
  EXPECT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
  ranks[1].dismiss(header);
  ranks[0].tidy(Clock::duration::zero());
  EXPECT_EQ(nullptr, ranks[0].reserve(1, kMessageBytes, {}, header).start);
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
  auto posted = p2p::Posted::no;
  EXPECT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(p2p::Posted::yes, posted);
  core::StagedBuffer on_device = staged(to, room);
  std::memcpy(on_device.host(), &header, sizeof header);
  MessageHeader found;
  EXPECT_FALSE(p2p::find_header(ranks[1], room, on_device.host(), sizeof header - 1, found));
  ASSERT_TRUE(p2p::find_header(ranks[1], room, on_device.host(), sizeof header, found));
  EXPECT_OK(p2p::fetch_message(ranks[1], room, on_device, found));
  EXPECT_EQ(sent, to.read(kMessageBytes));
  EXPECT_FALSE(p2p::find_header(ranks[1], room, on_device.host(), sizeof header, found));

  EXPECT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(p2p::Posted::yes, posted);
  Bytes host(kMessageBytes);
  std::memcpy(host.data(), &header, sizeof header);
  core::StagedBuffer on_host = core::StagedBuffer::untouched(host.data());
  EXPECT_OK(p2p::fetch_message(ranks[1], segment, on_host, header));
  EXPECT_EQ(sent, host);
}

TEST(Outbox, LeavesNoHeaderBehindWhereTheMessageIsTooLong) {
  Processes ranks(2);
  ranks.introduce();
  const Buffer from(kMessageBytes);
  const core::Segment segment = bytes(kMessageBytes);
  MessageHeader header;
  auto posted = p2p::Posted::no;
  EXPECT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(p2p::Posted::yes, posted);
  Bytes host(kMessageBytes - 1, 0x55);
  std::memcpy(host.data(), &header, sizeof header);
  core::StagedBuffer buffer = core::StagedBuffer::untouched(host.data());
  const core::Segment room = bytes(host.size());
  EXPECT_EQ(StatusCode::truncated, p2p::fetch_message(ranks[1], room, buffer, header).code());
  Bytes expected(host.size(), 0x55);
  std::fill_n(expected.begin(), sizeof header, 0);
  EXPECT_EQ(expected, host);
  EXPECT_FALSE(ranks[1].recognises(header));
}

TEST(Outbox, BothEndsLearnThatAMessageCouldNotBePacked) {
  Processes ranks(2);
  ranks.introduce();
  const Buffer from(kMessageBytes / 2);
  const Buffer to(kMessageBytes);
  const core::Segment segment = bytes(kMessageBytes);
  MessageHeader header;
  auto posted = p2p::Posted::no;
  EXPECT_FALSE(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted).ok());
  ASSERT_EQ(p2p::Posted::yes, posted);
  MessageHeader all;
  EXPECT_TRUE(ranks[0].reserve(1, kOutboxBytes, {}, all).is_full);
  EXPECT_TRUE(ranks[1].recognises(header));
  core::StagedBuffer buffer = staged(to, segment);
  EXPECT_CODE(device_error, p2p::fetch_message(ranks[1], segment, buffer, header));
  EXPECT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, all).start);
}

TEST(Outbox, BringsAMessageToScatteredHostMemoryByOneCopy) {
  static CountingRuntime& runtime = *new CountingRuntime;
  Processes ranks(2);
  ranks.introduce(runtime);
  Buffer from(kMessageBytes);
  from.write(counted(3));
  const core::Segment segment = bytes(kMessageBytes);
  MessageHeader header;
  auto posted = p2p::Posted::no;
  EXPECT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(p2p::Posted::yes, posted);
  // Every other group of four bytes.
  const core::Segment scattered{
      std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, 4, 0}}, 8),
      kMessageBytes / 4, 0};
  Bytes host(2 * kMessageBytes, 0x55);
  core::StagedBuffer buffer = core::StagedBuffer::untouched(host.data());
  runtime.rows = 0;
  EXPECT_OK(p2p::fetch_message(ranks[1], scattered, buffer, header));
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
  p2p::FetchBatch batch(ranks[1]);
  std::vector<std::unique_ptr<Buffer>> to;
  MessageHeader header;
  for (std::size_t i = 0; i < kMessages; ++i) {
    from.write(counted(static_cast<unsigned char>(i)));
    auto posted = p2p::Posted::no;
    EXPECT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
    ASSERT_EQ(p2p::Posted::yes, posted);
    header.fetch = i % 2 == 0 ? node::Fetch::by_engine : node::Fetch::by_size;
    to.push_back(std::make_unique<Buffer>(kMessageBytes));
    device::PointerInfo where = device::classify(to.back()->address());
    where.runtime = &runtime;
    auto buffer = core::StagedBuffer::staged(to.back()->address(), where);
    EXPECT_OK(p2p::fetch_message(ranks[1], segment, buffer, header, &batch));
  }
  EXPECT_EQ(kMessages, batch.size());
  EXPECT_TRUE(ranks[0].reserve(1, 1, {}, header).is_full);
  runtime.calls = 0;
  batch.begin();
  EXPECT_EQ(1, runtime.calls);
  for (bool done = false; !done;) EXPECT_OK(batch.poll(done));
  for (std::size_t i = 0; i < kMessages; ++i)
    EXPECT_EQ(counted(static_cast<unsigned char>(i)), to[i]->read(kMessageBytes));
  EXPECT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, header).start);
}

TEST(Outbox, GivesTheSenderItsMemoryBackWhereABatchFails) {
  static CountingRuntime& runtime = *new CountingRuntime;
  Processes ranks(2);
  ranks.introduce(runtime);
  Buffer from(kOutboxBytes);
  const Buffer to(kOutboxBytes);
  const core::Segment segment = bytes(kOutboxBytes);
  MessageHeader header;
  auto posted = p2p::Posted::no;
  EXPECT_OK(p2p::post_message(ranks[0], segment, staged(from, segment), 1, header, posted));
  ASSERT_EQ(p2p::Posted::yes, posted);
  header.fetch = node::Fetch::by_engine;
  device::PointerInfo where = device::classify(to.address());
  where.runtime = &runtime;
  auto buffer = core::StagedBuffer::staged(to.address(), where);
  p2p::FetchBatch batch(ranks[1]);
  EXPECT_OK(p2p::fetch_message(ranks[1], segment, buffer, header, &batch));
  runtime.fails = true;
  batch.begin();
  bool done = false;
  EXPECT_FALSE(batch.poll(done).ok());
  EXPECT_TRUE(done);
  EXPECT_NE(nullptr, ranks[0].reserve(1, kOutboxBytes, {}, header).start);
}

// What several blocks copy, only while the kernel is likely to be there still.
TEST(Outbox, HasTheKernelCopyWhatComesSoonAfterAnother) {
  Processes ranks(2);
  ranks.introduce();
  const Buffer from(kOutboxBytes);
  const Buffer to(kOutboxBytes);
  const auto fetched_quickly = [&](std::size_t size_bytes) {
    const auto before = ranks[1].counters().quick;
    const device::Copy copy{.dst = to.address(), .src = from.address(), .row_bytes = size_bytes};
    EXPECT_OK(ranks[1].copy({&copy, 1}));
    return ranks[1].counters().quick != before;
  };
  EXPECT_TRUE(fetched_quickly(8192));
  bool soon = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!soon && std::chrono::steady_clock::now() < end) soon = fetched_quickly(8193);
  EXPECT_TRUE(soon);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(fetched_quickly(8193));
  EXPECT_TRUE(fetched_quickly(8192));
}

// A launch takes longer than what a kernel that is there copies at once.
TEST(Outbox, HasTheKernelCopySeveralMessagesTogether) {
  constexpr std::size_t kMessages = 4;
  const std::size_t long_bytes = device::direct_copy_bytes() / kMessages + 1;
  Processes ranks(2);
  ranks.introduce();
  Buffer from(2 * kMessages * long_bytes);
  const Buffer to(from.size_bytes());
  const Bytes sent = counted(3, from.size_bytes());
  const auto at = [](std::size_t offset) { return static_cast<std::ptrdiff_t>(offset); };
  const auto fetched_quickly = [&](std::size_t size_bytes) {
    device::CopyBatch batch;
    for (std::size_t i = 0; i < kMessages; ++i)
      batch.plain.append(static_cast<std::byte*>(to.address()) + 2 * i * size_bytes,
                         static_cast<const std::byte*>(from.address()) + 2 * i * size_bytes,
                         size_bytes);
    const auto before = ranks[1].counters().quick;
    device::CopyTicket ticket;
    EXPECT_OK(ranks[1].begin_copies(batch, kMessages, node::Fetch::by_size, ticket));
    for (bool done = false; !done;) EXPECT_OK(ranks[1].runtime().copy_done(ticket, done));
    const Bytes got = to.read(to.size_bytes());
    for (std::size_t i = 0; i < kMessages; ++i)
      EXPECT_TRUE(std::equal(got.begin() + at(2 * i * size_bytes),
                             got.begin() + at((2 * i + 1) * size_bytes),
                             sent.begin() + at(2 * i * size_bytes)));
    return ranks[1].counters().quick - before;
  };
  from.write(sent);
  EXPECT_EQ(kMessages, fetched_quickly(2000));
  EXPECT_EQ(0u, fetched_quickly(long_bytes));
}

// As where two processes share a GPU without a server for their kernels.
class SharedRuntime final : public ForwardingRuntime {
 public:
  explicit SharedRuntime(std::uint64_t device, std::uint64_t server = 0)
      : place_{.device = device, .server = server, .turn_us = 150} {}

  device::KernelPlace kernel_place(int) override { return place_; }
  Status inbox_server(int device, device::InboxServer*& server) override {
    return device::host_runtime().inbox_server(device, server);
  }
  void expect_turns(int device) noexcept override { expected_ = device; }
  int expected() const { return expected_; }

 private:
  device::KernelPlace place_;
  int expected_ = -1;
};

TEST(Outbox, TellsTheRuntimeOfTurnsOnItsDevice) {
  Processes processes(3);
  SharedRuntime first(7);
  SharedRuntime second(8);
  SharedRuntime third(7);
  ASSERT_TRUE(processes[0].attach(first, 0));
  ASSERT_TRUE(processes[1].attach(second, 1));
  for (int rank = 0; rank < 2; ++rank) processes[rank].look_for_turns();
  EXPECT_EQ(-1, first.expected());
  ASSERT_TRUE(processes[2].attach(third, 2));
  for (int rank = 0; rank < 3; ++rank) processes[rank].look_for_turns();
  EXPECT_EQ(0, first.expected());
  EXPECT_EQ(-1, second.expected());
  EXPECT_EQ(2, third.expected());
  // Who would have to wait for a turn to move a message has patience for as long.
  const MessageHeader header{.size_bytes = 1};
  EXPECT_GE(processes[0].patience(header), std::chrono::microseconds(150));
  EXPECT_LT(processes[1].patience(header), std::chrono::microseconds(150));
}

// Among clients of one server the kernel copies what comes alone, and what is short.
TEST(Outbox, LeavesWindowsToOneLaunchWhereRanksShareADeviceThroughAServer) {
  Processes processes(2);
  SharedRuntime first(7, 1);
  SharedRuntime second(7, 1);
  ASSERT_TRUE(processes[0].attach(first, 0));
  ASSERT_TRUE(processes[1].attach(second, 0));
  const Buffer from(kOutboxBytes);
  const Buffer to(kOutboxBytes);
  const auto is_quick = [&](std::size_t size_bytes, std::uint32_t posted) {
    processes[1].own_board().posted.store(posted);
    const auto before = processes[1].counters().quick;
    const device::Copy copy{.dst = to.address(), .src = from.address(), .row_bytes = size_bytes};
    EXPECT_OK(processes[1].copy({&copy, 1}));
    return processes[1].counters().quick != before;
  };
  EXPECT_TRUE(is_quick(8192, 0));
  EXPECT_TRUE(is_quick(8192, 1));
  EXPECT_TRUE(is_quick(4096, 2));
  EXPECT_FALSE(is_quick(8192, 2));
}

// Also where the ranks cannot be a group because of it.
TEST(Group, TellsTheRuntimeOfTurnsOnItsDevice) {
  for (const bool shared : {false, true}) {
    SharedRuntime first(7);
    SharedRuntime second(shared ? 7 : 8);
    node::Group groups[2];
    std::vector<node::Record> records(2);
    constexpr node::Use kUse{.region_bytes = std::size_t{64} << 10};
    ASSERT_OK(groups[0].prepare(0, 2, first, 0, kUse, records[0]));
    ASSERT_OK(groups[1].prepare(1, 2, second, 0, kUse, records[1]));
    records[1].ok = shared ? 0 : 1;
    for (node::Group& group : groups) EXPECT_EQ(!shared, group.accept(records).ok());
    EXPECT_EQ(shared ? 0 : -1, first.expected());
    EXPECT_EQ(shared ? 0 : -1, second.expected());
  }
}

}  // namespace
}  // namespace accord::test
