// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that wait in their sender's outbox: headers only to those who can fetch, recognised by
// nobody else and only once, room that comes back, and what a receiver makes of them.
#include <cstring>

#include "core/device_message.h"
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
  void introduce() {
    MessageHeader header;
    bool is_full = false;
    for (int rank : {0, 1}) EXPECT_TRUE((*this)[rank].attach(device::host_runtime(), 0));
    for (int call = 0; call < 2; ++call)
      EXPECT_EQ(nullptr, (*this)[0].reserve(1, kMessageBytes, header, is_full));
    EXPECT_FALSE((*this)[1].may_hear_from(0));
    (*this)[1].follow();
    EXPECT_TRUE((*this)[1].may_hear_from(0));
  }

 private:
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
  bool is_full = false;
  EXPECT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, header, is_full));
  EXPECT_EQ(nullptr, ranks[0].reserve(2, kMessageBytes, header, is_full));
}

TEST(Outbox, OnlyTheReceiverRecognisesAHeaderAndOnlyOnce) {
  Processes ranks(3);
  ranks.introduce();
  MessageHeader header;
  bool is_full = false;
  ASSERT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, header, is_full));
  EXPECT_TRUE(ranks[1].recognises(header));
  EXPECT_FALSE(ranks[0].recognises(header));
  EXPECT_FALSE(ranks[2].recognises(header));
  const auto changed = [&](auto change) {
    MessageHeader other = header;
    change(other);
    return ranks[1].recognises(other);
  };
  EXPECT_FALSE(changed([](MessageHeader& other) { other.cookie[1] ^= 1; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { ++other.generation; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { other.sender = 3; }));
  EXPECT_FALSE(changed([](MessageHeader& other) { other.slot = node::OutboxBoard::kSlots; }));
  ranks[1].took(header);
  EXPECT_FALSE(ranks[1].recognises(header));
}

TEST(Outbox, HasRoomAgainForWhatWasTakenOrWithdrawn) {
  Processes ranks(2);
  ranks.introduce();
  std::vector<MessageHeader> headers(kOutboxBytes / kMessageBytes);
  bool is_full = false;
  for (MessageHeader& header : headers)
    ASSERT_NE(nullptr, ranks[0].reserve(1, kMessageBytes, header, is_full));
  MessageHeader more;
  EXPECT_EQ(nullptr, ranks[0].reserve(1, 1, more, is_full));
  EXPECT_TRUE(is_full);
  ranks[0].give_up();
  EXPECT_EQ(nullptr, ranks[0].reserve(1, 1, more, is_full));
  EXPECT_FALSE(is_full);
  ranks[1].took(headers[1]);
  EXPECT_EQ(nullptr, ranks[0].reserve(1, kMessageBytes + 1, more, is_full));
  EXPECT_TRUE(is_full);
  ranks[0].withdraw(headers[2]);
  std::byte* const first = ranks[0].reserve(1, 2 * kMessageBytes, more, is_full);
  ASSERT_NE(nullptr, first);
  EXPECT_FALSE(ranks[1].recognises(headers[1]));
  EXPECT_TRUE(ranks[1].recognises(more));
  EXPECT_EQ(nullptr, ranks[0].reserve(1, kOutboxBytes + 1, more, is_full));
  EXPECT_FALSE(is_full);
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

}  // namespace
}  // namespace accord::test
