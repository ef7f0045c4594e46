// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from device to device of two processes through a proxy: they arrive whole whatever their
// length, several at once with few chunks, and the death of the proxy is an error of both ends, but
// only of what is under way: without one they go directly.
#include <filesystem>
#include <fstream>
#include <string>

#include "node/node_number.h"
#include "process_state.h"
#include "proxy_ranks.h"

namespace accord::test {
namespace {

using net::Mail;
using net::Memory;
using Rank = ProxyRank;

bool stop(pid_t process) { return ::kill(process, SIGSTOP) == 0 && wait_until_stopped(process); }

class Designs : public TwoProcesses, public testing::WithParamInterface<const char*> {};

TEST_P(Designs, bring_messages_of_any_length) {
  const auto sizes = {std::size_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, kLong + 17};
  run(
      [&](End& end) {
        Rank rank(end, 0, GetParam());
        int seed = 0;
        for (const std::size_t size : sizes) {
          const DeviceBytes from(pattern(size, ++seed));
          const std::uint32_t number = rank.post(from.memory());
          rank.tell(number);
          EXPECT_OK(rank.end_of(number));
        }
        EXPECT_GT(rank.port.process(), 0) << "no proxy was asked";
        (void)rank.hear();
      },
      [&](End& end) {
        Rank rank(end, 1, GetParam());
        bool right = true;
        int seed = 0;
        for (const std::size_t size : sizes) {
          const DeviceBytes to(std::vector<char>(size, 'x'));
          right = rank.mail->fetch(0, rank.hear(), to.memory()).ok() && right;
          right = right && to.bytes() == pattern(size, ++seed);
        }
        rank.tell(1);
        return right;
      });
}

// Also once their sender has copied them to host memory, from where they leave by the adapters for
// that: by the active designs, by which its process puts them.
TEST_P(Designs, bring_what_was_kept_by_the_adapters_for_host_memory) {
  run(
      [&](End& end) {
        Rank rank(end, 0, GetParam());
        const std::string design = GetParam();
        for (int seed = 1; seed <= 2; ++seed) {
          const DeviceBytes from(pattern(kLong, seed));
          const std::uint32_t number = rank.post(from.memory());
          EXPECT_OK(rank.mail->keep(number));
          rank.tell(number);
          EXPECT_EQ(static_cast<std::uint32_t>(seed), rank.hear());
        }
        EXPECT_EQ(rank.mail->counters().by_host_devices, design.starts_with("active") ? 2U : 0U);
        rank.tell(0);
      },
      [&](End& end) {
        Rank rank(end, 1, GetParam());
        bool right = true;
        for (int seed = 1; seed <= 2; ++seed) {
          const DeviceBytes to(std::vector<char>(kLong, 'x'));
          right = rank.mail->fetch(0, rank.hear(), to.memory()).ok() && right;
          right = right && to.bytes() == pattern(kLong, seed);
          rank.tell(static_cast<std::uint32_t>(seed));
        }
        (void)rank.hear();
        return right;
      });
}

TEST_P(Designs, bring_many_at_once_both_ways) {
  run(
      [&](End& end) {
        Rank rank(end, 0, GetParam());
        EXPECT_TRUE(exchange_many(rank));
      },
      [&](End& end) {
        Rank rank(end, 1, GetParam());
        return exchange_many(rank);
      });
}

// It is stopped first, so that the transfer is under way when it is killed.
TEST_P(Designs, tell_both_ends_of_the_death_of_the_proxy) {
  run(
      [](End& end) {
        Rank rank(end, 0, GetParam());
        const DeviceBytes from(pattern(kLong, 3));
        const pid_t proxy = rank.proxy();
        ASSERT_GT(proxy, 0);
        ASSERT_TRUE(stop(proxy));
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        auto stage = Mail::Stage::waiting;
        EXPECT_TRUE(rank.wait([&] {
          EXPECT_OK(rank.mail->look(number, stage));
          return stage == Mail::Stage::being_read;
        }));
        ::usleep(200000);
        EXPECT_OK(rank.mail->look(number, stage));
        EXPECT_EQ(Mail::Stage::being_read, stage);
        ASSERT_EQ(0, ::kill(proxy, SIGKILL));
        const Status status = rank.end_of(number);
        EXPECT_TRUE(status.code() == StatusCode::device_error ||
                    status.code() == StatusCode::network)
            << status.message();
        rank.tell(0);
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1, GetParam());
        // Else the sender's has nothing to do yet when it is killed, and nothing is lost.
        if (rank.proxy() <= 0) return false;
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const Status status = rank.mail->fetch(0, rank.hear(), to.memory());
        (void)rank.hear();
        rank.tell(0);
        char name[256] = "";
        (void)::gethostname(name, sizeof name);
        if (status.message().find(name) == std::string::npos)
          std::fprintf(stderr, "%s\n", status.message().c_str());
        return !status.ok() && status.code() != StatusCode::unsupported;
      });
}

double processor_seconds() {
  timespec used{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// What waits for a proxy sleeps, and goes on once that has something to say.
TEST_P(Designs, take_no_processor_time_while_the_proxy_works) {
  run(
      [](End& end) {
        Rank rank(end, 0, GetParam());
        const DeviceBytes from(pattern(kLong, 3));
        const pid_t proxy = rank.proxy();
        ASSERT_GT(proxy, 0);
        ASSERT_TRUE(stop(proxy));
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        // Once all that goes before has been done, for which a busy machine may take longer.
        constexpr double kMostSeconds = 0.1;
        double spent = kMostSeconds;
        for (int tries = 0; tries < 10 && spent >= kMostSeconds; ++tries) {
          ::usleep(200000);
          const double before = processor_seconds();
          ::usleep(500000);
          spent = processor_seconds() - before;
        }
        EXPECT_LT(spent, kMostSeconds);
        ASSERT_EQ(0, ::kill(proxy, SIGCONT));
        EXPECT_OK(rank.end_of(number));
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1, GetParam());
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const bool right =
            rank.mail->fetch(0, rank.hear(), to.memory()).ok() && to.bytes() == pattern(kLong, 3);
        rank.tell(0);
        return right;
      });
}

// Whether it is asked for by its design or not: nothing is lost but time.
TEST_P(Designs, go_directly_where_no_proxy_can_be_started) {
  constexpr const char* kNowhere = "/nonexistent/accord_proxy";
  run(
      [](End& end) {
        Rank rank(end, 0, GetParam(), kNowhere);
        const DeviceBytes from(pattern(kLong, 3));
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        EXPECT_OK(rank.end_of(number));
        EXPECT_EQ(&net::fallback_design(),
                  rank.mail->usable(1, *net::find_design(GetParam()), from.memory().where));
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1, GetParam(), kNowhere);
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const Status status = rank.mail->fetch(0, rank.hear(), to.memory());
        rank.tell(0);
        return status.ok() && to.bytes() == pattern(kLong, 3);
      });
}

// A proxy that comes only after that: its rank receives without it.
TEST_P(Designs, are_received_while_the_proxy_is_yet_to_come) {
  run(
      [](End& end) {
        Rank rank(end, 0, GetParam());
        const DeviceBytes from(pattern(kLong, 3));
        ASSERT_GT(rank.proxy(), 0);
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        EXPECT_OK(rank.end_of(number));
        (void)rank.hear();
      },
      [](End& end) {
        const std::string slow = testing::TempDir() + "slow_proxy_" + std::to_string(::getpid());
        const std::string now = slow + "_now";
        std::ofstream(slow) << "#!/bin/sh\nfor i in $(seq 200); do [ -e " << now
                            << " ] && break; sleep 0.1; done\nexec " << proxy_program()
                            << " \"$@\"\n";
        std::filesystem::permissions(slow, std::filesystem::perms::owner_all);
        bool right = false;
        {
          Rank rank(end, 1, GetParam(), slow);
          const DeviceBytes to(std::vector<char>(kLong, 'x'));
          const auto began = std::chrono::steady_clock::now();
          const Status status = rank.mail->fetch(0, rank.hear(), to.memory());
          // A proxy that has not come after ten seconds is not waited for any more.
          right = status.ok() && to.bytes() == pattern(kLong, 3) &&
                  std::chrono::steady_clock::now() - began < std::chrono::seconds(8);
          std::ofstream{now};
          rank.tell(0);
        }
        std::filesystem::remove(slow);
        std::filesystem::remove(now);
        return right;
      });
}

// What has failed with that rank by an active proxy is held by it, passively.
TEST_P(Designs, give_way_to_one_that_spends_no_core) {
  const std::string name = GetParam();
  const net::Design& design = *net::find_design(name);
  const net::Design* const next = net::next_best(design);
  ASSERT_NE(nullptr, next);
  EXPECT_EQ(name.starts_with("active"), design.spends_core());
  EXPECT_STREQ(design.spends_core() ? "passive" : "direct", next->name());
  EXPECT_EQ(nullptr, net::next_best(net::fallback_design()));
}

// The proxy has room for chunks of its own, but for no pool.
TEST_P(Designs, want_a_pool_only_where_they_use_one) {
  constexpr const char* kLittle = "ACCORD_PROXY_BYTES=128K";
  run(
      [](End& end) {
        ::setenv("ACCORD_PROXY_CHUNK_BYTES", "64K", 1);  // the proxy's, too
        Rank rank(end, 0, GetParam(), proxy_program(), kLittle);
        const DeviceBytes from(pattern(kLong, 3));
        const net::Design& design = *net::find_design(GetParam());
        const auto usable = [&] { return rank.mail->usable(1, design, from.memory().where); };
        const bool needs_none = std::string(GetParam()) != "passive";
        EXPECT_EQ(&net::fallback_design(), usable());  // it is yet to come
        EXPECT_TRUE(rank.wait([&] { return rank.port.process() > 0; }));
        EXPECT_EQ(needs_none, rank.wait([&] {
          (void)usable();
          net::ProxyPort::Chunk chunk;
          return usable() == &design || !rank.port.take(nullptr, chunk).ok();
        }) && usable() == &design);
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        EXPECT_OK(rank.end_of(number));
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1, GetParam());
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const Status status = rank.mail->fetch(0, rank.hear(), to.memory());
        rank.tell(0);
        return status.ok() && to.bytes() == pattern(kLong, 3);
      });
}

// What comes after its death goes another way.
TEST_P(Designs, are_not_used_without_their_proxy) {
  run(
      [](End& end) {
        Rank rank(end, 0, GetParam());
        const DeviceBytes from(pattern(kLong, 3));
        const net::Design& design = *net::find_design(GetParam());
        const auto usable = [&] { return rank.mail->usable(1, design, from.memory().where); };
        EXPECT_TRUE(rank.wait([&] { return usable() == &design; }));
        ASSERT_GT(rank.port.process(), 0);
        ASSERT_EQ(0, ::kill(static_cast<pid_t>(rank.port.process()), SIGKILL));
        EXPECT_TRUE(rank.wait([&] { return usable() == &net::fallback_design(); }));
        // Nor is one of them an error that has not begun.
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        EXPECT_OK(rank.end_of(number));
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1, GetParam());
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const Status status = rank.mail->fetch(0, rank.hear(), to.memory());
        rank.tell(0);
        return status.ok() && to.bytes() == pattern(kLong, 3);
      });
}

bool names_node(const Status& status) {
  char name[256] = "";
  (void)::gethostname(name, sizeof name);
  return status.message().find("the proxy of node " + std::string(name)) != std::string::npos;
}

TEST_F(TwoProcesses, active2_tells_both_ends_of_the_death_of_the_receivers_proxy) {
  run(
      [](End& end) {
        Rank rank(end, 0, "active2");
        const DeviceBytes from(pattern(kLong, 3));
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        EXPECT_FALSE(rank.end_of(number).ok());
        rank.tell(0);
        (void)rank.hear();
      },
      [](End& end) {
        Rank rank(end, 1, "active2");
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const pid_t proxy = rank.proxy();
        if (proxy <= 0 || !stop(proxy)) return false;
        const auto fetch = rank.mail->begin_fetch(0, rank.hear(), to.memory());
        bool done = false;
        const bool waited = rank.mail->poll(*fetch, done).ok() && !done;
        ::usleep(200000);
        const bool waits = rank.mail->poll(*fetch, done).ok() && !done;
        (void)::kill(proxy, SIGKILL);
        Status status;
        const bool ended = rank.wait([&] {
          status = rank.mail->poll(*fetch, done);
          return done;
        });
        if (!names_node(status)) std::fprintf(stderr, "%s\n", status.message().c_str());
        (void)rank.hear();
        rank.tell(0);
        return waited && waits && ended && names_node(status);
      });
}

// Both proxies end, and its receiver is told, whatever of the message was under way.
TEST_P(Designs, leave_nothing_of_a_rank_that_dies) {
  run(
      [](End& end) {
        Rank rank(end, 0, GetParam());
        const DeviceBytes from(pattern(8 * kLong, 3));
        const pid_t proxy = rank.proxy();
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(static_cast<std::uint32_t>(::getpid()));
        rank.tell(static_cast<std::uint32_t>(proxy));
        rank.tell(number);
        (void)rank.end_of(number);
        (void)rank.hear();
      },
      [](End& end) {
        pid_t own_proxy = 0;
        bool right = false;
        {
          Rank rank(end, 1, GetParam());
          const DeviceBytes to(std::vector<char>(8 * kLong, 'x'));
          const auto process = static_cast<pid_t>(rank.hear());
          const auto proxy = static_cast<pid_t>(rank.hear());
          own_proxy = rank.proxy();
          const auto fetch = rank.mail->begin_fetch(0, rank.hear(), to.memory());
          ::usleep(5000);
          (void)::kill(process, SIGKILL);
          bool done = false;
          right = rank.wait([&] {
            (void)rank.mail->poll(*fetch, done);
            return done;
          });
          right = right && wait_until_ended(proxy);
        }
        return right && wait_until_ended(own_proxy);
      });
}

// Memory on a device that the proxy of that end does not see.
class Unseen : public TwoProcesses, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr const char* kOneDevice = "ACCORD_HOST_DEVICES=1";
};

TEST_P(Unseen, memory_of_the_sender_its_own_process_carries) {
  run(
      [&](End& end) {
        Rank rank(end, 0, GetParam(), proxy_program(), kOneDevice);
        const DeviceBytes from(pattern(kLong, 3), 1);
        const std::uint32_t number = rank.post(from.memory());
        rank.tell(number);
        EXPECT_OK(rank.end_of(number));
        EXPECT_GT(rank.port.process(), 0) << "no proxy was asked";
        (void)rank.hear();
      },
      [&](End& end) {
        Rank rank(end, 1, GetParam());
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const bool right =
            rank.mail->fetch(0, rank.hear(), to.memory()).ok() && to.bytes() == pattern(kLong, 3);
        rank.tell(1);
        return right;
      });
}

TEST_P(Unseen, memory_of_the_receiver_is_reached_all_the_same) {
  run(
      [&](End& end) {
        Rank rank(end, 0, GetParam());
        const DeviceBytes from(pattern(kLong, 3));
        for (int i = 0; i < 2; ++i) {
          const std::uint32_t number = rank.post(from.memory());
          rank.tell(number);
          EXPECT_OK(rank.end_of(number));
        }
        (void)rank.hear();
      },
      [&](End& end) {
        Rank rank(end, 1, GetParam(), proxy_program(), kOneDevice);
        const DeviceBytes to(std::vector<char>(kLong, 'x'), 1);
        bool right = true;
        for (int i = 0; i < 2; ++i)
          right = rank.mail->fetch(0, rank.hear(), to.memory()).ok() && right;
        rank.tell(1);
        return right && to.bytes() == pattern(kLong, 3);
      });
}

INSTANTIATE_TEST_SUITE_P(to_proxies, Unseen, testing::Values("active1", "active2"),
                         [](const auto& design) { return std::string(design.param); });
INSTANTIATE_TEST_SUITE_P(of_proxies, Designs, testing::Values("passive", "active1", "active2"),
                         [](const auto& design) { return std::string(design.param); });

}  // namespace
}  // namespace accord::test
