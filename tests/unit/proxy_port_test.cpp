// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank has from its proxy comes one by one, and whoever asks for it never waits.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "no_threads.h"
#include "process_state.h"
#include "proxy/port.h"
#include "support.h"

namespace accord::test {
namespace {

using Service = net::ProxyPort::Service;

template <class Done>
bool wait(Done done) {
  constexpr std::chrono::seconds kPatience{20};
  for (const auto until = std::chrono::steady_clock::now() + kPatience;
       std::chrono::steady_clock::now() < until; ::usleep(1000))
    if (done()) return true;
  return false;
}

TEST(ProxyPort, NobodyWaitsForAPoolThatIsAskedFor) {
  const char* const program = std::getenv("ACCORD_TEST_PROXY");
  ASSERT_NE(nullptr, program);
  proxy::Port port({.cookie = static_cast<std::uint64_t>(::getpid()) << 20,
                    .node = 1,
                    .program = program,
                    .settings = {"ACCORD_UCX_TLS=tcp"}},
                   {.chunk_bytes = 4096, .chunks = 2});
  EXPECT_EQ(0, port.process());
  EXPECT_TRUE(wait([&] { return port.has(Service::carrying, nullptr); }));
  const auto proxy = static_cast<pid_t>(port.process());
  ASSERT_GT(proxy, 0);
  ASSERT_EQ(0, ::kill(proxy, SIGSTOP));
  EXPECT_TRUE(wait_until_stopped(proxy));
  EXPECT_FALSE(port.has(Service::chunks, nullptr));
  ::usleep(100000);  // its thread waits for the answer
  EXPECT_TRUE(port.has(Service::carrying, nullptr));
  EXPECT_FALSE(port.has(Service::chunks, nullptr));
  ASSERT_EQ(0, ::kill(proxy, SIGCONT));
  // Unless there is no UCX here, and so no pool.
  net::ProxyPort::Chunk chunk;
  EXPECT_TRUE(wait([&] { return !port.take(nullptr, chunk).ok() || chunk.memory != nullptr; }));
  EXPECT_EQ(chunk.memory != nullptr, port.has(Service::chunks, nullptr));
  port.give_back(chunk);
}

TEST(ProxyPort, WithoutAThreadNoProxyComes) {
  proxy::Port port({.cookie = 1, .node = 1, .program = "none", .settings = {}},
                   {.chunk_bytes = 4096, .chunks = 2});
  const NoThreads scarce;
  EXPECT_FALSE(port.has(Service::carrying, nullptr));
  net::ProxyPort::Chunk chunk;
  EXPECT_CODE(unsupported, port.take(nullptr, chunk));
  EXPECT_TRUE(takes_signal(SIGTERM));
}

}  // namespace
}  // namespace accord::test
