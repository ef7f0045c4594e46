// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The engine's progress thread where the process can create none.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "idle_port.h"
#include "no_threads.h"

namespace accord::test {
namespace {

class Endless final : public core::Operation {
 public:
  std::atomic<int> steps{0};
  Phase advance(core::HostPort&) override {
    ++steps;
    return Phase::issued;
  }
};

TEST(EngineThreads, calls_block_without_one_until_there_can_be_one) {
  IdlePort port;
  core::Engine engine(port);
  engine.allow_threads(true);
  const auto operation = std::make_shared<Endless>();
  engine.submit(operation, nullptr);
  {
    const NoThreads scarce;
    const core::Engine::BlockingRegion region(engine);
    EXPECT_TRUE(engine.in_blocking_call());
    EXPECT_EQ(1, operation->steps);
  }
  const core::Engine::BlockingRegion region(engine);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (operation->steps < 2 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  EXPECT_LT(1, operation->steps);
  engine.stop_thread();
}

}  // namespace
}  // namespace accord::test
