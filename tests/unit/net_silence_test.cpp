// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A rank of another node that stands still, so that no connection ends: it is waited for as long as
// it may give no sign of life, and is an error that names it after that. One whose program is
// elsewhere gives them.
#include "net_ranks.h"

namespace accord::test {
namespace {

using net::Mail;
using net::Memory;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSilence{2000};
constexpr std::size_t kVeryLong = 12 << 20;
// It has answered something within the last eighth, and others take the processor.
constexpr std::chrono::milliseconds kAtMost = 3 * kSilence;

class Rank : public MailRank {
 public:
  Rank(End& end, std::uint32_t number) : MailRank(end, number) {
    open_mail({.kept_bytes_max = kLong});
  }
  static Memory memory_of(std::vector<char>& bytes) {
    return {.start = bytes.data(), .size_bytes = bytes.size(), .where = {}};
  }
  // Tells the other one which process this is, and stops with all its threads.
  void stand_still() const {
    tell(static_cast<std::uint32_t>(::getpid()));
    ::raise(SIGSTOP);
  }
  pid_t hear_who_stands_still() const {
    const auto process = static_cast<pid_t>(hear());
    ::usleep(200000);
    return process;
  }
  static void signal(pid_t process, int number) {
    ASSERT_GT(process, 0);
    ::kill(process, number);
  }
};

// `lived`: when it did, for sure. `began`: when it stood still.
void expect_names(std::uint32_t rank, const Status& status, Clock::time_point lived,
                  Clock::time_point began) {
  EXPECT_EQ(StatusCode::network, status.code());
  EXPECT_NE(std::string::npos, status.message().find("rank " + std::to_string(rank) +
                                                     ": net: it has given no sign of life for 2 s"))
      << status.message();
  EXPECT_GT(Clock::now() - lived, kSilence * 3 / 4);
  EXPECT_LT(Clock::now() - began, kAtMost);
}

// The receiver, whose errors these are, is rank 0 here: it is the process that the test is in.
class NetSilence : public TwoProcesses {
 protected:
  void SetUp() override { silence_allowed = kSilence; }
};

void send_from_one_that_stands_still(End& end) {
  Rank rank(end, 1);
  (void)rank.is_accepted();
  auto bytes = pattern(kLong, 3);
  const auto number = rank.mail->post(0, net::fallback_design(), Rank::memory_of(bytes));
  rank.tell(number.value_or(0));
  rank.stand_still();
  (void)rank.hear();
}

TEST_F(NetSilence, a_sender_that_stands_still_for_a_moment_is_waited_for) {
  silence_allowed = 3 * kSilence;
  run(
      [](End& end) {
        Rank rank(end, 0);
        rank.look_for_messages();
        const std::uint32_t number = rank.hear();
        const pid_t still = rank.hear_who_stands_still();
        std::vector<char> bytes(kLong);
        const auto fetch = rank.mail->begin_fetch(1, number, Rank::memory_of(bytes));
        const auto until = Clock::now() + kSilence;
        Status status;
        EXPECT_TRUE(rank.wait([&] {
          bool done = false;
          status = rank.mail->poll(*fetch, done);
          if (Clock::now() >= until) Rank::signal(still, SIGCONT);
          return done;
        }));
        EXPECT_OK(status);
        EXPECT_EQ(pattern(kLong, 3), bytes);
        rank.tell(0);
      },
      [](End& end) {
        send_from_one_that_stands_still(end);
        return true;
      });
}

TEST_F(NetSilence, a_sender_that_stands_still_is_an_error_of_its_receiver) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        const auto lived = Clock::now();
        rank.look_for_messages();
        const std::uint32_t number = rank.hear();
        const pid_t still = rank.hear_who_stands_still();
        std::vector<char> bytes(kLong);
        const auto began = Clock::now();
        expect_names(1, rank.mail->fetch(1, number, Rank::memory_of(bytes)), lived, began);
        // From then on at once.
        EXPECT_FALSE(rank.mail->may_send_to(1));
        const auto again = Clock::now();
        EXPECT_EQ(StatusCode::network, rank.mail->fetch(1, number, Rank::memory_of(bytes)).code());
        EXPECT_LT(Clock::now() - again, kSilence / 4);
        Rank::signal(still, SIGKILL);
      },
      [](End& end) {
        send_from_one_that_stands_still(end);
        return true;
      });
}

TEST_F(NetSilence, a_receiver_that_stands_still_is_an_error_of_its_sender) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        const auto lived = Clock::now();
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 3);
        const auto number = rank.mail->post(1, net::fallback_design(), Rank::memory_of(bytes));
        const pid_t still = rank.hear_who_stands_still();
        const auto began = Clock::now();
        expect_names(1, rank.end_of(number.value_or(0)), lived, began);
        Rank::signal(still, SIGKILL);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        rank.stand_still();
        return true;
      });
}

// What UCX has begun ends, too.
TEST_F(NetSilence, a_receiver_that_stands_still_in_the_middle_is_an_error_of_its_sender) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kVeryLong, 5);
        const auto number = rank.mail->post(1, net::fallback_design(), Rank::memory_of(bytes));
        rank.tell(number.value_or(0));
        Status status;
        const auto began = Clock::now();
        auto stage = Mail::Stage::waiting;
        constexpr std::chrono::seconds kForBytes{kVeryLong >> 20};
        while (stage != Mail::Stage::ended && status.ok() &&
               Clock::now() - began < kAtMost + kForBytes) {
          status = rank.mail->look(number.value_or(0), stage);
          ::usleep(1000);
        }
        EXPECT_EQ(StatusCode::network, status.code());
        EXPECT_NE(std::string::npos, status.message().find("rank 1")) << status.message();
        Rank::signal(static_cast<pid_t>(rank.hear()), SIGKILL);
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
        rank.stand_still();
        return true;
      });
}

TEST_F(NetSilence, one_whose_program_is_elsewhere_is_waited_for) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.is_accepted());
        auto bytes = pattern(kLong, 3);
        const auto number = rank.mail->post(1, net::fallback_design(), Rank::memory_of(bytes));
        const auto until = Clock::now() + 2 * kSilence;
        auto stage = Mail::Stage::waiting;
        while (Clock::now() < until) {
          ASSERT_OK(rank.mail->look(number.value_or(0), stage));
          ASSERT_EQ(Mail::Stage::waiting, stage);
          ::usleep(1000);
        }
        rank.tell(number.value_or(0));
        EXPECT_OK(rank.end_of(number.value_or(0)));
        rank.tell(0);
      },
      [](End& end) {
        Rank rank(end, 1);
        rank.look_for_messages();
        const std::uint32_t number = rank.hear();
        std::vector<char> bytes(kLong);
        const bool fetched = rank.mail->fetch(0, number, Rank::memory_of(bytes)).ok();
        (void)rank.hear();
        return fetched && bytes == pattern(kLong, 3);
      });
}

}  // namespace
}  // namespace accord::test
