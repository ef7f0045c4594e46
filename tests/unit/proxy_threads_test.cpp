// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two ranks of one node, each served by a thread of its own of their proxy, which is also built
// under the thread sanitizer.
#include "proxy_ranks.h"

namespace accord::test {
namespace {

class ProxyThreads : public TwoProcesses, public testing::WithParamInterface<const char*> {};

TEST_P(ProxyThreads, bring_messages_at_once) {
  constexpr const char* kThreads = "ACCORD_PROXY_THREADS=2";
  constexpr int kRounds = 3;
  run(
      [](End& end) {
        ProxyRank rank(end, 0, GetParam(), proxy_program(), kThreads, 0);
        for (int round = 0; round < kRounds; ++round) EXPECT_TRUE(exchange_many(rank));
        EXPECT_GT(rank.port.process(), 0);
        EXPECT_EQ(rank.port.process(), rank.hear<std::int64_t>());
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
