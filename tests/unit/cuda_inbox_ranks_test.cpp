// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges of several ranks: threads of one process, whose ends are on one device, where
// they share a server that does one part after the other and must let go of those that wait for
// the rest, or on several. Part of cuda_inbox_test.
#include <gtest/gtest.h>

#include "cuda_inbox_rig.h"
#include "inbox_calls.h"

namespace accord::test {
namespace {

class CudaInboxRanks : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
  }

  InboxCalls calls_;
};

TEST_P(CudaInboxRanks, on_one_device) {
  const Status opened = calls_.open(cuda_runtime(), GetParam(), 1);
  if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
  ASSERT_OK(opened);
  calls_.run_all();
}

TEST_P(CudaInboxRanks, on_two_devices) {
  if (cuda_runtime().device_count() < 2) GTEST_SKIP() << "one device only";
  Context contexts[2] = {};
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(Result::success, driver().primary_context_retain(&contexts[device], device));
  }
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(Result::success, driver().context_push(contexts[device]));
    const Result result = driver().context_enable_peer_access(contexts[1 - device], 0);
    Context popped = nullptr;
    ASSERT_EQ(Result::success, driver().context_pop(&popped));
    if (result != Result::success && result != Result::peer_access_already_enabled)
      GTEST_SKIP() << "no peer access";
  }
  const Status opened = calls_.open(cuda_runtime(), GetParam(), 2);
  if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
  ASSERT_OK(opened);
  calls_.run_all();
}

INSTANTIATE_TEST_SUITE_P(All, CudaInboxRanks, testing::Values(2, 3, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace accord::test
