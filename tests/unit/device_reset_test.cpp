// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A program that resets its device and makes memory anew, at the same addresses: whatever of the
// node's ranks had memory there finds out before it uses it, and neither frees nor closes what is
// the program's by now.
#include "node/device_pool.h"
#include "node/handle_cache.h"
#include "outbox_world.h"
#include "reset_runtime.h"
#include "shared_allocation.h"

namespace accord::test {
namespace {

using device::PointerInfo;

constexpr std::size_t kRegionBytes = 64 << 10;

TEST(DeviceReset, ThePoolLeasesNothingOfWhatIsGoneAndDoesNotFreeIt) {
  ResetRuntime runtime;
  const auto lease = [&](node::DeviceLease& made) {
    return node::lease_device_memory(runtime, 0, 4096, node::LeaseOf::messages, made);
  };
  node::DeviceLease before, after;
  ASSERT_OK(lease(before));
  runtime.reset();
  const Buffer program(before.segment().size_bytes);
  ASSERT_EQ(before.segment().base, program.address());
  ASSERT_OK(lease(after));
  EXPECT_NE(program.address(), after.segment().base);
  before.reset();
  EXPECT_TRUE(device::exists(device::classify(program.address())));
  EXPECT_TRUE(device::exists(after.segment()));
}

TEST(DeviceReset, WhatWasOpenIsOpenedAnewAndNotClosed) {
  ResetRuntime runtime;
  node::HandleCache cache;
  SharedAllocation shared;
  shared.put(42);
  const auto open = [&](PointerInfo& memory) {
    return cache.open(runtime, 0, shared.handle(), shared.descriptor(), node::Opening::allowed,
                      memory);
  };
  PointerInfo before, anew;
  ASSERT_OK(open(before));
  runtime.reset();
  const Buffer program(SharedAllocation::kBytes);
  ASSERT_EQ(before.base, program.address());
  ASSERT_OK(open(anew));
  EXPECT_EQ(42, first_byte(anew.base));
  EXPECT_EQ(1U, cache.handles());
  EXPECT_CODE(invalid_argument, cache.close(before));
  EXPECT_EQ(1U, runtime.opened());
  runtime.reset();
  const Buffer more(SharedAllocation::kBytes);
  ASSERT_EQ(anew.base, more.address());
  EXPECT_OK(cache.close(anew));
  EXPECT_EQ(0U, cache.handles());
}

// One that waits in what its sender lends, while its receiver resets its device.
TEST(DeviceReset, WhatPeersLendIsOpenedAgain) {
  ResetRuntime runtime;
  NodeWorld world(2, kRegionBytes, 31, runtime);
  node::Offers& mine = world.group(0).offers();
  node::Offers& theirs = world.group(1).offers();
  Buffer lent(100);
  const Bytes data(lent.size_bytes(), 42);
  lent.write(data);
  std::int32_t offer = -1;
  for (unsigned uses = 0; uses < node::Offers::kUsesBeforeOffer; ++uses) {
    mine.take_call();
    (void)mine.use(lent.end(1).memory, 1, offer);
  }
  theirs.tend();
  ASSERT_TRUE(mine.use(lent.end(1).memory, 1, offer));
  const auto found = [&] { return theirs.find(0, {offer, 0}, mine.generation(offer)); };
  const std::byte* const before = found();
  ASSERT_NE(nullptr, before);
  runtime.reset();
  std::vector<std::unique_ptr<Buffer>> program;  // until it has got that address
  do program.push_back(std::make_unique<Buffer>(lent.size_bytes()));
  while (program.back()->address() != before && program.size() < 10000);
  ASSERT_EQ(before, program.back()->address());
  const std::byte* const anew = found();
  ASSERT_NE(nullptr, anew);
  Bytes read(data.size());
  const device::Copy one{read.data(), anew, read.size()};
  EXPECT_OK(runtime.copy(0, {&one, 1}));
  EXPECT_EQ(data, read);
  EXPECT_TRUE(mine.use(lent.end(1).memory, 1, offer));
}

TEST(DeviceReset, ACommunicatorWhoseMemoryIsGoneIsAnError) {
  ResetRuntime runtime;
  NodeWorld world(2, kRegionBytes, 32, runtime);
  EXPECT_OK(world.group(0).check_self());
  runtime.reset();
  EXPECT_CODE(device_error, world.group(0).check_self());
}

TEST(DeviceReset, MessagesWaitElsewhere) {
  static ResetRuntime& runtime = *new ResetRuntime;
  Processes ranks(2);
  EXPECT_TRUE(ranks[0].attach(runtime, 0));
  EXPECT_TRUE(ranks[1].attach(device::host_runtime(), 0));
  const auto room_of_message = [&]() -> std::byte* {
    MessageHeader header;
    std::byte* start = nullptr;
    for (int call = 0; call < 4 && start == nullptr; ++call) {
      start = ranks[0].reserve(1, kMessageBytes, {}, header).start;
      ranks[0].tidy(std::chrono::seconds(10));
      ranks[1].follow();
    }
    if (start != nullptr) ranks[1].dismiss(header);
    return start;
  };
  const PointerInfo before = device::classify(room_of_message());
  ASSERT_NE(nullptr, before.base);
  runtime.reset();
  const Buffer program(before.size_bytes);
  ASSERT_EQ(before.base, program.address());
  const PointerInfo now = device::classify(room_of_message());
  ASSERT_NE(nullptr, now.base);
  EXPECT_NE(before.base, now.base);
  EXPECT_TRUE(device::exists(device::classify(program.address())));
}

}  // namespace
}  // namespace accord::test
