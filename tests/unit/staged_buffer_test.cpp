// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Shadows of device memory: which are page-locked, what goes to them packed, and how many are
// copied out together.
#include <chrono>
#include <thread>

#include "counting_runtime.h"
#include "outbox_world.h"

namespace accord::test {
namespace {

// Which takes long, and would be used by messages alone that no header brings.
TEST(StagedBuffer, LocksNoLongShadowThatIsBypassed) {
  constexpr std::size_t kLongBytes = std::size_t{32} << 20;
  const Buffer memory(kLongBytes);
  device::staging_pool().trim();
  const auto locked = [] { return device::staging_pool().counters().misses; };
  const auto had = locked();
  const auto receive = [&](unsigned char value, std::size_t received_bytes) {
    auto buffer = core::StagedBuffer::staged(memory.address(), device::classify(memory.address()));
    buffer.writes(bytes(kLongBytes));
    buffer.is_bypassed();
    ASSERT_OK(buffer.open());
    std::memset(buffer.host(), value, received_bytes);
    if (received_bytes > sizeof(MessageHeader))
      EXPECT_OK(buffer.copy_out(received_bytes));
    else
      buffer.was_bypassed();
  };
  receive(1, sizeof(MessageHeader));
  EXPECT_EQ(had, locked());
  receive(2, kMessageBytes);
  EXPECT_EQ(Bytes(kMessageBytes, 2), memory.read(kMessageBytes));
  const auto had_short = locked();
  receive(3, kMessageBytes);  // as the one before
  EXPECT_EQ(had_short + 1, locked());
  EXPECT_EQ(Bytes(kMessageBytes, 3), memory.read(kMessageBytes));
  device::staging_pool().trim();
  receive(4, sizeof(MessageHeader));
  EXPECT_EQ(had_short + 2, locked());
  receive(5, sizeof(MessageHeader));  // headers come again
  EXPECT_EQ(had_short + 2, locked());
}

// Rows so far apart that their shadow is not page-locked go packed, both ways; gaps stay.
TEST(StagedBuffer, BringsRowsThatAreFarApart) {
  constexpr std::ptrdiff_t kStep = 64 << 10;
  constexpr std::size_t kRows = 40;
  constexpr std::size_t kRowBytes = 12;
  constexpr std::size_t kLess = 30 * kRowBytes - 5;
  const core::Segment rows{
      std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, kRowBytes, 0}}, kStep),
      kRows, 0};
  const Bytes before = counted(1, kRows * kStep);
  Buffer memory(before.size());
  memory.write(before);
  auto buffer = core::StagedBuffer::staged(memory.address(), device::classify(memory.address()));
  buffer.reads(rows);
  buffer.writes(rows);
  ASSERT_OK(buffer.open());
  ASSERT_OK(buffer.copy_in());
  auto* const shadow = static_cast<unsigned char*>(buffer.host());
  Bytes expected = before;
  std::size_t packed = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kRowBytes; ++i, ++packed) {
      const std::size_t at = row * kStep + i;
      ASSERT_EQ(before[at], shadow[at]);
      shadow[at] ^= 0xff;
      if (packed < kLess) expected[at] ^= 0xff;
    }
  }
  core::CopyOuts outs;
  EXPECT_FALSE(outs.add(buffer, kLess));
  ASSERT_OK(buffer.copy_out(kLess));
  EXPECT_EQ(expected, memory.read(expected.size()));
}

TEST(CopyOuts, BringAllTogether) {
  constexpr std::size_t kPartBytes = 40;
  constexpr std::size_t kParts = 16;
  Buffer to(kParts * kPartBytes);
  to.write(Bytes(to.size_bytes(), 9));
  const core::Segment segment = bytes(kPartBytes);
  std::vector<core::StagedBuffer> buffers;
  core::CopyOuts outs;
  for (std::size_t i = 0; i < kParts; ++i) {
    EXPECT_FALSE(outs.are_enough());
    auto* const start = static_cast<std::byte*>(to.address()) + i * kPartBytes;
    buffers.push_back(core::StagedBuffer::staged(start, device::classify(start)));
    buffers.back().writes(segment);
    EXPECT_OK(buffers.back().open());
    std::memset(buffers.back().host(), static_cast<int>(i + 10), kPartBytes);
    EXPECT_TRUE(outs.add(buffers.back(), kPartBytes - i));
  }
  EXPECT_TRUE(outs.are_enough());
  EXPECT_FALSE(outs.add(core::StagedBuffer::untouched(&outs), kPartBytes));
  EXPECT_FALSE(outs.add(buffers[0], 0));
  EXPECT_EQ(kParts, outs.size());
  outs.begin();
  for (bool done = false; !done;) ASSERT_OK(outs.poll(done));
  const Bytes found = to.read(to.size_bytes());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t part = i / kPartBytes;
    EXPECT_EQ(i % kPartBytes < kPartBytes - part ? part + 10 : 9, found[i]) << i;
  }
}

TEST(CopyOuts, TellThatTheyCouldNotBegin) {
  static CountingRuntime& runtime = *new CountingRuntime;
  runtime.fails = true;
  const Buffer to(kMessageBytes);
  device::PointerInfo where = device::classify(to.address());
  where.runtime = &runtime;
  auto buffer = core::StagedBuffer::staged(to.address(), where);
  buffer.writes(bytes(kMessageBytes));
  EXPECT_OK(buffer.open());
  core::CopyOuts outs;
  EXPECT_TRUE(outs.add(buffer, kMessageBytes));
  outs.begin();
  bool done = false;
  EXPECT_CODE(device_error, outs.poll(done));
  EXPECT_TRUE(done);
}

TEST(CopyOuts, DoNotWaitForOthersWhereTheyAreLong) {
  const Buffer to(std::size_t{64} << 10);
  const core::StagedBuffer buffer = staged(to, bytes(to.size_bytes()));
  core::CopyOuts outs;
  EXPECT_TRUE(outs.add(buffer, to.size_bytes()));
  EXPECT_TRUE(outs.are_enough());
}

}  // namespace
}  // namespace accord::test
