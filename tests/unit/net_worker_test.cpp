// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Workers of two processes: messages, transfers both ways, and what one sees of the other's end.
#include "net_processes.h"

namespace accord::test {
namespace {

using net::Region;
using net::RemoteRegion;
using Clock = std::chrono::steady_clock;
using NetWorker = TwoProcesses;

TEST_F(NetWorker, messages_arrive_in_order) {
  run(
      [](End& end) {
        for (int i = 0; i < 200; ++i) {
          const std::string text =
              std::to_string(i) + std::string(static_cast<std::size_t>(i) * 20, 'x');
          ASSERT_TRUE(end.worker->post(*end.peer, i % 2 == 0 ? 3 : 5, bytes_of(text)).ok());
        }
        EXPECT_TRUE(end.serve_until_told());
      },
      [](End& end) {
        std::vector<std::string> heard;
        for (unsigned kind : {3U, 5U}) {
          end.worker->listen(kind, [&, kind](Bytes bytes) {
            std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            heard.push_back(std::to_string(kind) + ":" + text);
          });
        }
        bool right = end.wait([&] { return heard.size() == 200; });
        for (std::size_t i = 0; i < heard.size(); ++i) {
          right = right && heard[i] == (i % 2 == 0 ? "3:" : "5:") + std::to_string(i) +
                                           std::string(i * 20, 'x');
        }
        end.tell({});
        return right;
      });
}

TEST_F(NetWorker, a_handler_answers) {
  run(
      [](End& end) {
        std::string answer;
        end.worker->listen(2, [&](Bytes bytes) {
          answer.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
        ASSERT_TRUE(end.worker->post(*end.peer, 1, bytes_of("ping")).ok());
        EXPECT_TRUE(end.wait([&] { return answer == "ping pong"; }));
        end.tell({});
      },
      [](End& end) {
        end.worker->listen(1, [&](Bytes bytes) {
          std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          (void)end.worker->post(*end.peer, 2, bytes_of(text + " pong"));
        });
        return end.serve_until_told();
      });
}

TEST_F(NetWorker, long_messages_by_tag) {
  run(
      [](End& end) {
        const auto first = pattern(kLong, 1);
        const auto second = pattern(100, 2);
        EXPECT_TRUE(end.finish(end.worker->send(*end.peer, 1, first.data(), first.size())).ok());
        EXPECT_TRUE(end.finish(end.worker->send(*end.peer, 2, second.data(), second.size())).ok());
        EXPECT_TRUE(end.serve_until_told());
      },
      [](End& end) {
        std::vector<char> first(kLong);
        std::vector<char> second(100);
        Ticket later = end.worker->receive(*end.peer, 2, second.data(), second.size());
        const bool got_first =
            end.finish(end.worker->receive(*end.peer, 1, first.data(), first.size())).ok();
        const bool got_second = end.finish(later).ok();
        end.tell({});
        return got_first && got_second && first == pattern(kLong, 1) && second == pattern(100, 2);
      });
}

// It knows the address, and has another key.
TEST_F(NetWorker, a_stranger_is_not_heard) {
  run(
      [](End& end) {
        std::unique_ptr<Worker> stranger;
        Peer* peer = nullptr;
        ASSERT_TRUE(
            Worker::open({.net_devices = "", .transports = "tcp", .key = {7, 8}}, stranger).ok());
        ASSERT_TRUE(stranger->connect(end.addresses[1], peer).ok());
        const auto theirs = pattern(100, 1);
        ASSERT_TRUE(stranger->post(*peer, 3, bytes_of("theirs")).ok());
        Ticket sent = stranger->send(*peer, 9, theirs.data(), theirs.size());
        EXPECT_TRUE(end.wait([&] { return stranger->progress(), end.has_news(); }));
        (void)end.hear();
        const auto ours = pattern(100, 2);
        ASSERT_TRUE(end.worker->post(*end.peer, 3, bytes_of("ours")).ok());
        EXPECT_TRUE(end.finish(end.worker->send(*end.peer, 9, ours.data(), ours.size())).ok());
        EXPECT_TRUE(end.serve_until_told());
        stranger->cancel(sent);
        for (bool done = false; !done; stranger->progress()) (void)stranger->poll(sent, done);
      },
      [](End& end) {
        std::vector<std::string> heard;
        end.worker->listen(3, [&](Bytes bytes) {
          heard.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
        std::vector<char> got(100);
        const Ticket receive = end.worker->receive(*end.peer, 9, got.data(), got.size());
        bool right = end.wait([&] { return end.worker->strange_messages() == 1; });
        end.tell(bytes_of("go on"));
        right = right && end.wait([&] { return !heard.empty(); }) && end.finish(receive).ok();
        right = right && heard == std::vector<std::string>{"ours"} && got == pattern(100, 2);
        end.tell({});
        return right;
      });
}

TEST_F(NetWorker, puts_and_gets) {
  run(
      [](End& end) {
        auto memory = pattern(kLong, 4);
        std::unique_ptr<Region> region;
        ASSERT_TRUE(end.worker->share(memory.data(), memory.size(), region).ok());
        const auto address = reinterpret_cast<std::uint64_t>(memory.data());
        end.tell(std::as_bytes(std::span(&address, 1)));
        end.tell(region->key());
        EXPECT_TRUE(end.serve_until_told());
        (void)end.hear();
        const auto put = pattern(kLong / 2, 5);
        EXPECT_TRUE(std::equal(put.begin(), put.end(), memory.begin() + kLong / 2));
        EXPECT_EQ(memory[kLong / 2 - 1], pattern(kLong, 4)[kLong / 2 - 1]);
      },
      [](End& end) {
        std::uint64_t address = 0;
        const auto told = end.hear();
        std::memcpy(&address, told.data(), sizeof address);
        std::unique_ptr<RemoteRegion> region;
        bool right = end.worker->reach(*end.peer, end.hear(), region).ok();
        std::vector<char> got(kLong);
        right = right &&
                end.finish(end.worker->get(*end.peer, got.data(), kLong, address, *region)).ok() &&
                got == pattern(kLong, 4);
        const auto put = pattern(kLong / 2, 5);
        right = right && end.finish(end.worker->put(*end.peer, put.data(), put.size(),
                                                    address + kLong / 2, *region))
                             .ok();
        region.reset();
        end.tell({});
        return right;
      });
}

TEST_F(NetWorker, a_peer_that_dies_ends_what_waits_for_it) {
  run(
      [](End& end) {
        bool has_heard = false;
        end.worker->listen(1, [&](Bytes) { has_heard = true; });
        ASSERT_TRUE(end.worker->post(*end.peer, 1, bytes_of("here")).ok());
        ASSERT_TRUE(end.wait([&] { return has_heard; }));
        std::vector<char> memory(kLong);
        Ticket waits = end.worker->receive(*end.peer, 9, memory.data(), memory.size());
        Ticket sends = end.worker->send(*end.peer, 8, memory.data(), memory.size());
        end.tell({});  // now it dies
        EXPECT_EQ(end.finish(waits).code(), StatusCode::network);
        EXPECT_EQ(end.finish(sends).code(), StatusCode::network);
        EXPECT_FALSE(end.worker->check(*end.peer).ok());
        EXPECT_FALSE(end.worker->post(*end.peer, 1, bytes_of("still there?")).ok());
      },
      [](End& end) {
        bool has_heard = false;
        end.worker->listen(1, [&](Bytes) { has_heard = true; });
        if (!end.worker->post(*end.peer, 1, bytes_of("here")).ok()) return false;
        if (!end.wait([&] { return has_heard; }) || !end.serve_until_told()) return false;
        ::kill(::getpid(), SIGKILL);
        return false;
      });
}

TEST_F(NetWorker, a_receive_is_cancelled) {
  run(
      [](End& end) {
        std::vector<char> memory(64);
        Ticket ticket = end.worker->receive(*end.peer, 1, memory.data(), memory.size());
        end.worker->cancel(ticket);
        EXPECT_FALSE(end.finish(ticket).ok());
        end.tell({});
      },
      [](End& end) { return end.serve_until_told(); });
}

// What a thread does that serves a process which is elsewhere.
TEST_F(NetWorker, sleeps_until_something_comes) {
  run(
      [](End& end) {
        bool has_heard = false;
        end.worker->listen(1, [&](Bytes) { has_heard = true; });
        const auto until = Clock::now() + kPatience;
        while (!has_heard && Clock::now() < until) {
          end.worker->progress();
          if (has_heard || !end.worker->arm()) continue;
          pollfd readable{.fd = end.worker->descriptor(), .events = POLLIN, .revents = 0};
          ASSERT_EQ(::poll(&readable, 1, 10000), 1);
        }
        EXPECT_TRUE(has_heard);
        end.tell({});
      },
      [](End& end) {
        ::usleep(50000);
        return end.worker->post(*end.peer, 1, bytes_of("good morning")).ok() &&
               end.serve_until_told();
      });
}

}  // namespace
}  // namespace accord::test
