// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The cache of opened allocations of other processes, here of this one's own: one mapping however
// many users, another one for another life of the same address, never more than the limits.
#include "node/handle_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "support.h"

namespace accord::device {
DeviceRuntime& host_runtime();
}

namespace accord::node {
namespace {

constexpr std::size_t kBytes = 10000;

// An allocation and what its owner tells of it.
class Exported {
 public:
  Exported() {
    EXPECT_OK(device::host_runtime().allocate(0, device::MemoryKind::device, kBytes, address_));
    device::PointerInfo info;
    EXPECT_TRUE(device::host_runtime().classify(address_, info));
    EXPECT_OK(device::host_runtime().export_memory(address_, exported_));
    memory_ = {1,
               exported_.file_descriptor,
               reinterpret_cast<std::uint64_t>(address_),
               info.buffer_id,
               kBytes,
               exported_.bytes};
  }
  ~Exported() {
    ::close(exported_.file_descriptor);
    EXPECT_OK(device::host_runtime().free(address_));
  }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;

  const PeerMemory& memory() const { return memory_; }
  void put(unsigned char value) { copy(address_, &value); }

  static void copy(void* dst, const void* src) {
    const device::Copy one{dst, src, 1};
    EXPECT_OK(device::host_runtime().copy(0, {&one, 1}));
  }

 private:
  void* address_ = nullptr;
  device::ExportedMemory exported_;
  PeerMemory memory_;
};

int first_byte(const void* start) {
  unsigned char value = 0;
  Exported::copy(&value, start);
  return value;
}

Status open(HandleCache& cache, const Exported& exported, void*& start) {
  return cache.open(device::host_runtime(), 0, exported.memory(), start);
}

TEST(HandleCache, OpensOnceAndClosesWithTheLastUser) {
  HandleCache cache;
  Exported exported;
  exported.put(42);
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_OK(open(cache, exported, first));
  ASSERT_OK(open(cache, exported, second));
  EXPECT_EQ(first, second);
  EXPECT_EQ(42, first_byte(first));
  EXPECT_EQ(1u, cache.handles());
  EXPECT_EQ(kBytes, cache.mapped_bytes());
  EXPECT_OK(cache.close(first));
  EXPECT_EQ(42, first_byte(second));
  EXPECT_OK(cache.close(second));
  EXPECT_EQ(0u, cache.handles());
  EXPECT_EQ(0u, cache.mapped_bytes());
  device::PointerInfo info;
  EXPECT_FALSE(device::host_runtime().classify(first, info));
  EXPECT_CODE(invalid_argument, cache.close(first));
  const HandleCache::Counters counters = cache.counters();
  EXPECT_EQ(1u, counters.hits);
  EXPECT_EQ(1u, counters.misses);
  EXPECT_EQ(1u, counters.opens);
  EXPECT_EQ(1u, counters.closes);
  EXPECT_EQ(0u, counters.refusals);
}

// Where nothing may be opened: only what others have open is to be had, and counts as used.
TEST(HandleCache, ReusesWhatIsOpenAndOpensNothing) {
  HandleCache cache;
  Exported exported;
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_FALSE(cache.reuse(device::host_runtime(), 0, exported.memory(), second));
  EXPECT_EQ(cache.handles(), 0u);
  EXPECT_OK(open(cache, exported, first));
  EXPECT_TRUE(cache.reuse(device::host_runtime(), 0, exported.memory(), second));
  EXPECT_EQ(first, second);
  EXPECT_OK(cache.close(first));
  EXPECT_EQ(cache.handles(), 1u);
  EXPECT_OK(cache.close(second));
  EXPECT_EQ(cache.handles(), 0u);
}

TEST(HandleCache, AnAddressUsedAgainIsAnotherAllocation) {
  HandleCache cache;
  auto before = std::make_unique<Exported>();
  const std::uint64_t address = before->memory().base;
  before->put(1);
  void* old = nullptr;
  ASSERT_OK(open(cache, *before, old));
  before.reset();
  Exported after;
  ASSERT_EQ(address, after.memory().base);
  after.put(2);
  void* now = nullptr;
  ASSERT_OK(open(cache, after, now));
  EXPECT_EQ(2, first_byte(now));
  EXPECT_EQ(1, first_byte(old));
  EXPECT_EQ(2u, cache.handles());
  EXPECT_OK(cache.close(old));
  EXPECT_EQ(2, first_byte(now));
  EXPECT_OK(cache.close(now));
}

TEST(HandleCache, KeepsItsLimits) {
  for (const HandleCache::Limits& limits :
       {HandleCache::Limits{.handles = 2}, HandleCache::Limits{.mapped_bytes = 2 * kBytes}}) {
    HandleCache cache(limits);
    const Exported a, b, c;
    void* starts[3] = {};
    ASSERT_OK(open(cache, a, starts[0]));
    ASSERT_OK(open(cache, b, starts[1]));
    EXPECT_CODE(unsupported, open(cache, c, starts[2]));
    EXPECT_EQ(1u, cache.counters().refusals);
    EXPECT_OK(cache.close(starts[0]));
    EXPECT_OK(open(cache, c, starts[2]));
    EXPECT_OK(cache.close(starts[1]));
    EXPECT_OK(cache.close(starts[2]));
  }
}

TEST(HandleCache, WhatCannotBeOpenedIsRefusedAndForgotten) {
  HandleCache cache;
  const Exported exported;
  PeerMemory wrong = exported.memory();
  wrong.descriptor = 1 << 20;
  void* start = nullptr;
  EXPECT_FALSE(cache.open(device::host_runtime(), 0, wrong, start).ok());
  EXPECT_EQ(1u, cache.counters().refusals);
  EXPECT_EQ(0u, cache.handles());
  EXPECT_OK(open(cache, exported, start));
  EXPECT_OK(cache.close(start));
}

}  // namespace
}  // namespace accord::node
