// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Transfers from and to device memory where adapters take time to reach it: none ends before an
// adapter could have read or written all of it, and one after the other.
#include <cstdlib>

#include "net_ranks.h"

namespace accord::test {
namespace {

using Clock = std::chrono::steady_clock;
using NetPaced = TwoProcesses;

// The rates of `mic` in machines.def, in bytes a second.
constexpr double kSlowdown = 20;
constexpr double kReads = 962e6 / kSlowdown;
constexpr double kWrites = 5280e6 / kSlowdown;
constexpr double kNetwork = 6800e6 / kSlowdown;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Two messages out of device memory into host memory: the second waits for the first.
TEST_F(NetPaced, messages_out_of_a_device) {
  run(
      [](End& end) {
        const DeviceBytes device(pattern(kLong, 1));
        const net::Memory from = device.memory();
        (void)end.hear();
        Ticket first = end.worker->send(*end.peer, 1, from.address(), kLong, from.where);
        Ticket second = end.worker->send(*end.peer, 2, from.address(), kLong, from.where);
        EXPECT_TRUE(end.finish(first).ok());
        EXPECT_TRUE(end.finish(second).ok());
        EXPECT_TRUE(end.serve_until_told());
      },
      [](End& end) {
        std::vector<char> got(kLong);
        const auto begin = Clock::now();
        end.tell(bytes_of("now"));
        bool right = end.finish(end.worker->receive(*end.peer, 1, got.data(), kLong)).ok();
        right = right && seconds_since(begin) >= 0.8 * kLong / kReads;
        right = right && end.finish(end.worker->receive(*end.peer, 2, got.data(), kLong)).ok() &&
                seconds_since(begin) >= 1.8 * kLong / kReads && got == pattern(kLong, 1);
        end.tell({});
        return right;
      });
}

void tell_of(const End& end, const void* memory, const net::Region& region) {
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  end.tell(std::as_bytes(std::span(&address, 1)));
  end.tell(region.key());
}
std::uint64_t hear_of(const End& end, std::unique_ptr<net::RemoteRegion>& region) {
  std::uint64_t address = 0;
  const auto told = end.hear();
  std::memcpy(&address, told.data(), sizeof address);
  EXPECT_TRUE(end.worker->reach(*end.peer, end.hear(), region).ok());
  return address;
}

TEST_F(NetPaced, what_comes_to_a_device) {
  run(
      [](End& end) {
        auto data = pattern(kLong, 2);
        const DeviceBytes device(pattern(kLong, 0));
        const net::Memory to = device.memory();
        std::unique_ptr<net::Region> regions[2];
        ASSERT_TRUE(end.worker->share(data.data(), kLong, regions[0]).ok());
        ASSERT_TRUE(end.worker->share(to.address(), kLong, regions[1], to.where).ok());
        tell_of(end, data.data(), *regions[0]);
        tell_of(end, to.address(), *regions[1]);
        EXPECT_TRUE(end.serve_until_told());
        EXPECT_EQ(device.bytes(), data);
      },
      [](End& end) {
        const DeviceBytes device(pattern(kLong, 0));
        const net::Memory to = device.memory();
        // Beyond what the network takes, which is real and may be faster.
        const double beyond = 0.9 * kLong * (1 / kWrites - 1 / kNetwork);
        std::unique_ptr<net::RemoteRegion> region;
        std::uint64_t address = hear_of(end, region);
        auto begin = Clock::now();
        bool right =
            end.finish(end.worker->get(*end.peer, to.address(), kLong, address, *region, to.where))
                .ok() &&
            seconds_since(begin) >= beyond && device.bytes() == pattern(kLong, 2);
        address = hear_of(end, region);
        const auto data = pattern(kLong, 2);
        begin = Clock::now();
        right = right &&
                end.finish(end.worker->put(*end.peer, data.data(), kLong, address, *region)).ok() &&
                seconds_since(begin) >= beyond;
        region.reset();
        end.tell({});
        return right;
      });
}

// A thread that sleeps until its descriptor tells something wakes as a transfer may begin.
TEST_F(NetPaced, sleepers_wake_in_time) {
  run(
      [](End& end) {
        const DeviceBytes device(pattern(kLong, 3));
        const net::Memory from = device.memory();
        Ticket ticket = end.worker->send(*end.peer, 1, from.address(), kLong, from.where);
        bool done = false;
        int wakes = 0;
        for (; !done && wakes < 20000; ++wakes) {
          end.worker->progress();
          EXPECT_TRUE(end.worker->poll(ticket, done).ok());
          pollfd readable{.fd = end.worker->descriptor(), .events = POLLIN, .revents = 0};
          if (!done && end.worker->arm()) {
            EXPECT_EQ(::poll(&readable, 1, 5000), 1);
          }
        }
        EXPECT_TRUE(done);
        EXPECT_TRUE(end.serve_until_told());
      },
      [](End& end) {
        std::vector<char> got(kLong);
        const bool right = end.finish(end.worker->receive(*end.peer, 1, got.data(), kLong)).ok() &&
                           got == pattern(kLong, 3);
        end.tell({});
        return right;
      });
}

// What has not begun ends at once.
TEST_F(NetPaced, a_transfer_that_waits_can_be_cancelled) {
  run(
      [](End& end) {
        const DeviceBytes device(pattern(kLong, 4));
        const net::Memory from = device.memory();
        Ticket ticket = end.worker->send(*end.peer, 1, from.address(), kLong, from.where);
        bool done = false;
        end.worker->cancel(ticket);
        EXPECT_EQ(end.worker->poll(ticket, done).code(), StatusCode::network);
        EXPECT_TRUE(done);
        end.tell({});
      },
      [](End& end) { return end.serve_until_told(); });
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  setenv("ACCORD_RUNTIME", "host", 1);
  setenv("ACCORD_HOST_MACHINE", "mic", 1);
  setenv("ACCORD_HOST_SLOWDOWN", "20", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
