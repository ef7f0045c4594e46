// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between nodes by their headers, which a socket carries here in the host MPI's stead:
// several are on their way at once, and what is cut off or left behind holds nobody up.
#include "p2p/net_messages.h"

#include "idle_port.h"
#include "net_ranks.h"
#include "p2p/loan.h"

namespace accord::test {
namespace {

using node::MessageHeader;

constexpr std::size_t kRoomBytes = 8 * kLong;
constexpr p2p::NetMessages::Cookie kCookie{0x1234567890abcdef, 0xfedcba0987654321};

class Buffer : public DeviceBytes {
 public:
  using DeviceBytes::DeviceBytes;
  core::Segment segment() const { return {core::Typemap::contiguous(1), size(), 0}; }
  core::StagedBuffer staged() const {
    auto made = core::StagedBuffer::staged(start(), device::classify(start()));
    made.writes(segment());
    EXPECT_OK(made.open());
    return made;
  }
};

class Rank : public MailRank {
 public:
  Rank(End& end, std::uint32_t number) : MailRank(end, number) {
    open_mail({.kept_bytes_max = kRoomBytes});
    messages.emplace(*mail, kCookie, number, 2);
  }
  bool post(const Buffer& buffer, MessageHeader& header) {
    auto posted = p2p::Posted::no;
    EXPECT_OK(messages->post(buffer.segment(), buffer.staged(), other, net::fallback_design(),
                             header, posted));
    return posted == p2p::Posted::yes;
  }
  Status end_of(const MessageHeader& header) {
    p2p::LoanEnd end(*messages, header);
    Status status;
    bool done = false;
    (void)wait([&] {
      status = end.poll(done);
      return done || !status.ok();
    });
    return done || !status.ok() ? status : Status(StatusCode::unsupported, "does not end");
  }
  template <class T = MessageHeader>
  T hear() const {
    return MailRank::hear<T>();
  }

  std::optional<p2p::NetMessages> messages;
};

using NetMessages = TwoProcesses;

// Their sender is stopped: one after the other, the first would never begin.
TEST_F(NetMessages, those_of_a_batch_are_asked_for_before_any_is_waited_for) {
  constexpr int kMessages = 5;
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        std::vector<std::unique_ptr<Buffer>> buffers;
        std::vector<MessageHeader> headers(kMessages);
        for (int i = 0; i < kMessages; ++i) {
          buffers.push_back(std::make_unique<Buffer>(pattern(kLong, i)));
          ASSERT_TRUE(rank.post(*buffers.back(), headers[static_cast<std::size_t>(i)]));
          rank.tell(headers[static_cast<std::size_t>(i)]);
        }
        rank.tell(::getpid());
        for (const MessageHeader& header : headers) EXPECT_OK(rank.end_of(header));
        (void)rank.hear<int>();
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<std::unique_ptr<Buffer>> buffers;
        std::vector<MessageHeader> headers;
        for (int i = 0; i < kMessages; ++i) headers.push_back(rank.hear());
        const auto sender = rank.hear<pid_t>();
        if (sender <= 0) return false;  // it has failed; 0 would be all of the tests
        ::kill(sender, SIGSTOP);
        p2p::NetBatch batch(*rank.mail);
        for (const MessageHeader& header : headers) {
          // The last is too long for its receiver, which is known at once.
          const bool fits = buffers.size() + 1 < headers.size();
          buffers.push_back(std::make_unique<Buffer>(std::vector<char>(fits ? kLong : 100, 'x')));
          core::StagedBuffer to = buffers.back()->staged();
          const Status status = rank.messages->fetch(buffers.back()->segment(), to, header, &batch);
          EXPECT_EQ(fits ? StatusCode::ok : StatusCode::truncated, status.code());
        }
        const std::size_t begun = batch.size();
        ::kill(sender, SIGCONT);
        const std::vector<Status> outcomes = batch.run();
        bool right = begun == kMessages - 1 && outcomes.size() == begun;
        for (std::size_t i = 0; right && i < outcomes.size(); ++i)
          right = outcomes[i].ok() && buffers[i]->bytes() == pattern(kLong, static_cast<int>(i));
        rank.tell(1);
        return right;
      });
}

// Its sender has the room back.
TEST_F(NetMessages, one_whose_header_was_cut_off_is_given_up) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        const Buffer buffer(pattern(kLong, 1));
        MessageHeader header;
        MessageHeader more;
        for (std::size_t used = 0; used + kLong <= kRoomBytes; used += kLong) {
          ASSERT_TRUE(rank.post(buffer, header));
          EXPECT_OK(rank.messages->move(header));
        }
        EXPECT_FALSE(rank.post(buffer, more));
        rank.tell(header.ticket);
        rank.tell(header.ticket);
        EXPECT_TRUE(rank.wait([&] { return rank.post(buffer, more); }));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        rank.messages->dismiss(rank.hear<std::uint64_t>() ^ std::uint64_t{1} << 63);  // nobody's
        rank.messages->dismiss(rank.hear<std::uint64_t>());
        (void)rank.hear<int>();
        return true;
      });
}

TEST_F(NetMessages, who_leaves_waits_for_nobody_to_take_a_header) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        const Buffer buffer(pattern(kLong, 1));
        MessageHeader header;
        ASSERT_TRUE(rank.post(buffer, header));
        IdlePort port;  // in which no header is ever taken
        p2p::LoanOperation loan(*rank.messages, header);
        EXPECT_EQ(core::Operation::Phase::issued, loan.advance(port));
        rank.messages->leave();
        EXPECT_EQ(core::Operation::Phase::done, loan.advance(port));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        (void)rank.hear<int>();
        return true;
      });
}

}  // namespace
}  // namespace accord::test
