// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies by the kernel that stays on the device.
#include "outbox_world.h"

namespace accord::test {
namespace {

TEST(QuickCopy, CopiesAnyNumberOfBytesAgainAndAgain) {
  device::QuickCopy quick;
  for (const std::size_t size_bytes :
       {std::size_t{1}, kMessageBytes, device::QuickCopy::kBytesMax}) {
    Bytes sent(size_bytes);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 7 + 1);
    Buffer from(size_bytes);
    from.write(sent);
    const Buffer to(size_bytes);
    for (int round = 0; round < 3; ++round) {
      bool done = false;
      EXPECT_OK(quick.run(device::host_runtime(), 0,
                          {.dst = to.address(), .src = from.address(), .row_bytes = size_bytes},
                          done));
      EXPECT_TRUE(done);
      EXPECT_EQ(sent, to.read(size_bytes));
      std::ranges::reverse(sent);
      from.write(sent);
    }
  }
}

TEST(QuickCopy, CopiesToPageLockedMemoryAndBack) {
  device::QuickCopy quick;
  Bytes sent(kMessageBytes);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 5 + 3);
  Buffer from(kMessageBytes);
  from.write(sent);
  const Buffer staging(kMessageBytes, device::MemoryKind::pinned);
  const Buffer to(kMessageBytes);
  bool done = false;
  EXPECT_OK(quick.run(device::host_runtime(), 0,
                      {.dst = staging.address(), .src = from.address(), .row_bytes = kMessageBytes},
                      done));
  EXPECT_TRUE(done);
  EXPECT_OK(quick.run(device::host_runtime(), 0,
                      {.dst = to.address(), .src = staging.address(), .row_bytes = kMessageBytes},
                      done));
  EXPECT_TRUE(done);
  EXPECT_EQ(sent, to.read(kMessageBytes));
}

TEST(QuickCopy, LeavesAloneWhatItCannotCopy) {
  device::QuickCopy quick;
  const Buffer from(2 * device::QuickCopy::kBytesMax);
  const Buffer to(kMessageBytes);
  Bytes host(kMessageBytes);
  const auto is_copied = [&](void* dst, const void* src, std::size_t size_bytes) {
    bool done = true;
    EXPECT_OK(quick.run(device::host_runtime(), 0,
                        {.dst = dst, .src = src, .row_bytes = size_bytes}, done));
    return done;
  };
  EXPECT_TRUE(is_copied(to.address(), from.address(), kMessageBytes));
  EXPECT_FALSE(is_copied(to.address(), from.address(), kMessageBytes + 1));
  EXPECT_FALSE(is_copied(host.data(), from.address(), kMessageBytes));
  EXPECT_FALSE(is_copied(to.address(), host.data(), kMessageBytes));
  const Buffer large(2 * device::QuickCopy::kBytesMax);
  EXPECT_FALSE(is_copied(large.address(), from.address(), large.size_bytes()));
}

}  // namespace
}  // namespace accord::test
