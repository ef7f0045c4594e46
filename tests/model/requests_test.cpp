// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The table of requests, which outlive the host MPI's handles for them.
#include "core/requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace accord::model {
namespace {

// The host MPI gives a handle out again as soon as one thread has completed it, before that thread
// can tell us.
TEST(Requests, HandleThatComesBackBeforeItsWorkIsFinished) {
  struct Work final : core::Tracked {
    Status start() override {
      ++starts;
      return {};
    }
    Status finish(const core::Completion&) override {
      ++finishes;
      return {};
    }
    int starts = 0;
    int finishes = 0;
  };
  constexpr core::HostRequest kHandle = 77;
  core::Requests requests;
  const auto old_work = std::make_shared<Work>();
  requests.track(kHandle, old_work);
  EXPECT_EQ(requests.claim(kHandle), old_work);
  requests.unclaim(old_work);  // a test that found it incomplete
  ASSERT_EQ(requests.claim(kHandle), old_work);
  // Complete in the host MPI. Another thread gets the handle for a request that needs nothing of
  // us.
  EXPECT_EQ(requests.find(kHandle), nullptr);
  EXPECT_EQ(requests.claim(kHandle), nullptr);
  EXPECT_TRUE(requests.start(kHandle).ok());
  EXPECT_EQ(old_work->starts, 0);
  // Then again, for one that does.
  const auto new_work = std::make_shared<Work>();
  requests.track(kHandle, new_work);
  EXPECT_TRUE(requests.finish(kHandle, old_work, {}).ok());
  EXPECT_EQ(old_work->finishes, 1);
  ASSERT_EQ(requests.claim(kHandle), new_work);
  EXPECT_TRUE(requests.finish(kHandle, new_work, {}).ok());
  EXPECT_TRUE(requests.finish(kHandle, new_work, {}).ok());  // once is enough
  EXPECT_EQ(new_work->finishes, 1);
  EXPECT_TRUE(requests.empty());
}

// As where a thread that waits in another call looks what has come, and must take the lock to end.
TEST(Requests, IsClaimedOnceAnotherThreadHasLookedAtIt) {
  struct Work final : core::Tracked {
    bool may_fetch_early() const noexcept override { return true; }
    Status finish(const core::Completion&) override { return {}; }
  };
  constexpr core::HostRequest kHandle = 77;
  core::Requests requests;
  const auto work = std::make_shared<Work>();
  requests.track(kHandle, work);
  std::thread other;
  std::atomic<bool> has_begun{false};
  std::atomic<bool> has_ended{false};
  requests.look_at_each([&](core::HostRequest, core::Tracked&) {
    other = std::thread([&] {
      has_begun = true;
      EXPECT_EQ(requests.claim(kHandle), work);
      EXPECT_TRUE(has_ended);
    });
    while (!has_begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_ended = true;
  });
  ASSERT_TRUE(other.joinable());
  other.join();
}

}  // namespace
}  // namespace accord::model
