// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages by number between two processes: how they are fetched, what becomes of the sender's
// buffer, and what both ends learn of errors.
#include "net_ranks.h"
#include "no_threads.h"

namespace accord::test {
namespace {

using net::Mail;
using net::Memory;

constexpr std::size_t kKeptMax = 2 * kLong;

class Rank : public MailRank {
 public:
  Rank(End& end, std::uint32_t number) : MailRank(end, number) {
    open_mail({.kept_bytes_max = kKeptMax});
  }
  std::uint32_t post(std::vector<char>& bytes, const net::Design& design = net::fallback_design()) {
    const auto number = mail->post(other, design, memory_of(bytes));
    EXPECT_TRUE(number.has_value());
    return number.value_or(0);
  }
  static Memory memory_of(std::vector<char>& bytes) {
    return {.start = bytes.data(), .size_bytes = bytes.size(), .where = {}};
  }
};

using NetMail = TwoProcesses;

TEST_F(NetMail, a_message_is_fetched_while_its_sender_is_elsewhere) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 3);
        const std::uint32_t number = rank.post(bytes);
        auto stage = Mail::Stage::ended;
        EXPECT_OK(rank.mail->look(number, stage));
        EXPECT_EQ(Mail::Stage::waiting, stage);
        rank.tell(number);
        EXPECT_EQ(1U, rank.hear());  // in no call of ours: it has the message
        EXPECT_OK(rank.end_of(number));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<char> bytes(kLong);
        const bool fetched = rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes)).ok();
        rank.tell(1);
        (void)rank.hear();
        return fetched && bytes == pattern(kLong, 3);
      });
}

// Such a rank takes no part.
TEST_F(NetMail, a_rank_without_a_thread_is_told_so) {
  run(
      [](End& end) {
        const NoThreads scarce;
        std::unique_ptr<net::Attendant> attendant;
        EXPECT_CODE(no_memory, net::Attendant::start(*end.worker, attendant));
        EXPECT_EQ(nullptr, attendant);
        EXPECT_TRUE(takes_signal(SIGTERM));
      },
      [](End&) { return true; });
}

TEST_F(NetMail, nobody_sends_to_who_does_not_look) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        for (int i = 0; i < 1000; ++i) EXPECT_FALSE(rank.mail->may_send_to(1));
        rank.tell(1);
        EXPECT_TRUE(rank.is_accepted());
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        const bool was_invited = rank.wait([&] { return rank.mail->is_invited(); });
        (void)rank.hear();
        rank.mail->accept_invitations();
        const bool is_invited = rank.mail->is_invited();
        (void)rank.hear();
        return was_invited && !is_invited && rank.mail->was_invited();
      });
}

TEST_F(NetMail, many_at_once_in_any_order) {
  constexpr std::uint32_t kMessages = 40;
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        std::vector<std::vector<char>> bytes;
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t i = 0; i < kMessages; ++i) bytes.push_back(pattern(i * 5000 + 1, 7));
        for (auto& each : bytes) rank.tell(numbers.emplace_back(rank.post(each)));
        for (const std::uint32_t number : numbers) EXPECT_OK(rank.end_of(number));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<std::vector<char>> bytes;
        std::vector<std::uint32_t> numbers;
        std::vector<std::shared_ptr<Mail::Fetch>> fetches;
        for (std::uint32_t i = 0; i < kMessages; ++i) {
          numbers.push_back(rank.hear());
          bytes.emplace_back(i * 5000 + 1);
        }
        for (std::uint32_t i = kMessages; i-- > 0;)
          fetches.push_back(rank.mail->begin_fetch(0, numbers[i], Rank::memory_of(bytes[i])));
        bool right = true;
        for (const auto& fetch : fetches) {
          right = rank.wait([&] {
            bool done = false;
            right = rank.mail->poll(*fetch, done).ok() && right;
            return done;
          }) && right;
        }
        for (std::uint32_t i = 0; i < kMessages; ++i)
          right = right && bytes[i] == pattern(i * 5000 + 1, 7);
        (void)rank.hear();
        return right;
      });
}

// Keeping is never refused; only what comes then is.
TEST_F(NetMail, a_kept_message_leaves_the_users_buffer) {
  constexpr int kMessages = 3;
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        std::vector<std::vector<char>> bytes;
        std::vector<std::uint32_t> numbers;
        std::vector<char> more(1);
        const auto post_more = [&] {
          const auto posted = rank.mail->post(1, net::fallback_design(), Rank::memory_of(more));
          if (posted) rank.mail->withdraw(*posted);
          return posted.has_value();
        };
        for (int i = 0; i < kMessages; ++i) bytes.push_back(pattern(kKeptMax / 2, i));
        for (auto& each : bytes) numbers.push_back(rank.post(each));
        EXPECT_TRUE(post_more());
        for (int i = 0; i < kMessages; ++i) {
          const auto index = static_cast<std::size_t>(i);
          EXPECT_FALSE(rank.mail->is_kept(numbers[index]));
          EXPECT_OK(rank.mail->keep(numbers[index]));
          EXPECT_TRUE(rank.mail->is_kept(numbers[index]));
          EXPECT_OK(rank.end_of(numbers[index]));
          bytes[index].assign(bytes[index].size(), 'x');
        }
        EXPECT_FALSE(post_more());
        for (const std::uint32_t number : numbers) rank.tell(number);
        EXPECT_EQ(1U, rank.hear());
        // Its room comes back.
        EXPECT_TRUE(rank.wait([&] {
          (void)rank.mail->progress();
          return post_more();
        }));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        bool right = true;
        for (int i = 0; i < kMessages; ++i) {
          std::vector<char> bytes(kKeptMax / 2);
          right = rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes)).ok() && right;
          right = right && bytes == pattern(kKeptMax / 2, i);
        }
        rank.tell(1);
        (void)rank.hear();
        return right;
      });
}

TEST_F(NetMail, one_that_is_not_there_any_more_is_an_error) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 5);
        const std::uint32_t withdrawn = rank.post(bytes);
        rank.mail->withdraw(withdrawn);
        rank.tell(withdrawn);
        (void)rank.hear();
        const std::uint32_t failed = rank.post(bytes);
        rank.mail->fail(failed);
        rank.tell(failed);
        (void)rank.hear();
        const std::uint32_t unwanted = rank.post(bytes);
        rank.tell(unwanted);
        EXPECT_OK(rank.end_of(unwanted));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<char> bytes(kLong);
        bool right = true;
        for (int i = 0; i < 2; ++i) {
          const Status status = rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes));
          right = right && status.code() == StatusCode::network;
          rank.tell(1);
        }
        rank.mail->dismiss(0, rank.hear());
        (void)rank.hear();
        return right;
      });
}

TEST_F(NetMail, a_sender_that_dies_is_an_error_of_its_receiver) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 5);
        rank.tell(rank.post(bytes));
        ::kill(::getpid(), SIGKILL);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        const std::uint32_t number = rank.hear();
        ::usleep(200000);
        std::vector<char> bytes(kLong);
        return rank.mail->fetch(0, number, Rank::memory_of(bytes)).code() == StatusCode::network;
      });
}

// Here no process has a proxy.
TEST_F(NetMail, what_cannot_go_by_its_design_goes_directly) {
  const net::Design& passive = *net::find_design("passive");
  run(
      [&](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        EXPECT_EQ(&net::fallback_design(), rank.mail->usable(1, passive, {}));
        auto bytes = pattern(kLong, 3);
        for (int i = 0; i < 2; ++i) {
          const std::uint32_t number = rank.post(bytes, passive);
          if (i == 1) EXPECT_OK(rank.mail->keep(number));
          rank.tell(number);
          EXPECT_OK(rank.end_of(number));
        }
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        bool right = true;
        for (int i = 0; i < 2; ++i) {
          std::vector<char> bytes(kLong);
          right = rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes)).ok() && right;
          right = right && bytes == pattern(kLong, 3);
        }
        rank.tell(1);
        return right;
      });
}

// It cannot be received: what comes later is to go another way.
TEST_F(NetMail, a_design_that_has_failed_with_a_receiver_is_left_alone) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 3);
        EXPECT_EQ(&net::fallback_design(), rank.mail->usable(1, net::fallback_design(), {}));
        rank.tell(rank.post(bytes));
        EXPECT_TRUE(
            rank.wait([&] { return rank.mail->usable(1, net::fallback_design(), {}) == nullptr; }));
        EXPECT_TRUE(rank.mail->may_send_to(1));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<char> too_short(kLong / 2);
        const Status status = rank.mail->fetch(0, rank.hear(), Rank::memory_of(too_short));
        (void)rank.hear();
        return status.code() == StatusCode::network;
      });
}

// So long that both are seen in the middle of it.
constexpr std::size_t kVeryLong = 20 * kLong;

TEST_F(NetMail, a_receiver_that_fetches_another_message_is_yet_to_come_to_the_next) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto first = pattern(kVeryLong, 5);
        auto second = pattern(kLong, 6);
        const std::uint32_t numbers[] = {rank.post(first), rank.post(second)};
        auto stage = Mail::Stage::ended;
        EXPECT_OK(rank.mail->look(numbers[1], stage));
        EXPECT_EQ(Mail::Stage::waiting, stage);
        rank.tell(numbers[0]);
        while (stage == Mail::Stage::waiting) EXPECT_OK(rank.mail->look(numbers[1], stage));
        EXPECT_EQ(Mail::Stage::is_next, stage);
        EXPECT_OK(rank.end_of(numbers[0]));
        EXPECT_OK(rank.mail->look(numbers[1], stage));
        EXPECT_EQ(Mail::Stage::waiting, stage);
        rank.tell(numbers[1]);
        EXPECT_OK(rank.end_of(numbers[1]));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<char> bytes(kVeryLong);
        bool right = rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes)).ok();
        bytes.resize(kLong);
        right = rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes)).ok() && right;
        (void)rank.hear();
        return right && bytes == pattern(kLong, 6);
      });
}

// So long that it is under way still when a sender that other processes kept from running looks.
constexpr std::size_t kLongest = 4 * kVeryLong;

TEST_F(NetMail, a_sender_that_dies_in_the_middle_is_an_error_of_its_receiver) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLongest, 5);
        const std::uint32_t number = rank.post(bytes);
        rank.tell(number);
        auto stage = Mail::Stage::waiting;
        while (stage == Mail::Stage::waiting) EXPECT_OK(rank.mail->look(number, stage));
        EXPECT_EQ(Mail::Stage::being_read, stage);
        ::kill(::getpid(), SIGKILL);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<char> bytes(kLongest);
        return rank.mail->fetch(0, rank.hear(), Rank::memory_of(bytes)).code() ==
               StatusCode::network;
      });
}

TEST_F(NetMail, a_receiver_that_dies_in_the_middle_is_an_error_of_its_sender) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kVeryLong, 5);
        const std::uint32_t number = rank.post(bytes);
        rank.tell(number);
        EXPECT_EQ(StatusCode::network, rank.end_of(number).code());
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        std::vector<char> bytes(kVeryLong);
        const auto fetch = rank.mail->begin_fetch(0, rank.hear(), Rank::memory_of(bytes));
        const auto& first = *static_cast<const volatile char*>(bytes.data() + 1);
        while (first == 0) {
          bool done = false;
          if (!rank.mail->poll(*fetch, done).ok() || done) return false;
        }
        ::kill(::getpid(), SIGKILL);
        return false;
      });
}

TEST_F(NetMail, a_receiver_that_dies_is_an_error_of_its_sender) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 5);
        const std::uint32_t number = rank.post(bytes);
        rank.tell(0);
        EXPECT_EQ(StatusCode::network, rank.end_of(number).code());
        EXPECT_FALSE(rank.mail->may_send_to(1));
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        (void)rank.hear();
        ::kill(::getpid(), SIGKILL);
        return false;
      });
}

}  // namespace
}  // namespace accord::test
