// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The cache of opened allocations of other processes, here of this one's own: one mapping however
// many users, another one for another life of the same address, never more than the limits.
#include "node/handle_cache.h"

#include <gtest/gtest.h>

#include <memory>

#include "shared_allocation.h"
#include "support.h"

namespace accord::node {
namespace {

using test::first_byte;
using test::SharedAllocation;

constexpr std::size_t kBytes = SharedAllocation::kBytes;

Status open(HandleCache& cache, const SharedAllocation& shared, device::PointerInfo& memory,
            Opening opening = Opening::allowed) {
  return cache.open(device::host_runtime(), 0, shared.handle(), shared.descriptor(), opening,
                    memory);
}

TEST(HandleCache, OpensOnceAndClosesWithTheLastUser) {
  HandleCache cache;
  SharedAllocation shared;
  shared.put(42);
  device::PointerInfo first;
  device::PointerInfo second;
  ASSERT_OK(open(cache, shared, first));
  ASSERT_OK(open(cache, shared, second));
  EXPECT_EQ(first, second);
  EXPECT_EQ(42, first_byte(first.base));
  EXPECT_EQ(1u, cache.handles());
  EXPECT_EQ(kBytes, cache.mapped_bytes());
  EXPECT_OK(cache.close(first));
  EXPECT_EQ(42, first_byte(second.base));
  EXPECT_OK(cache.close(second));
  EXPECT_EQ(0u, cache.handles());
  EXPECT_EQ(0u, cache.mapped_bytes());
  device::PointerInfo info;
  EXPECT_FALSE(device::host_runtime().classify(first.base, info));
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
  SharedAllocation shared;
  device::PointerInfo first;
  device::PointerInfo second;
  EXPECT_CODE(unsupported, open(cache, shared, second, Opening::no));
  EXPECT_EQ(cache.handles(), 0u);
  EXPECT_OK(open(cache, shared, first));
  EXPECT_OK(open(cache, shared, second, Opening::no));
  EXPECT_EQ(first, second);
  EXPECT_OK(cache.close(first));
  EXPECT_EQ(cache.handles(), 1u);
  EXPECT_OK(cache.close(second));
  EXPECT_EQ(cache.handles(), 0u);
}

TEST(HandleCache, AnAddressUsedAgainIsAnotherAllocation) {
  HandleCache cache;
  auto before = std::make_unique<SharedAllocation>();
  const std::uint64_t address = before->handle().base;
  before->put(1);
  device::PointerInfo old;
  ASSERT_OK(open(cache, *before, old));
  before.reset();
  SharedAllocation after;
  ASSERT_EQ(address, after.handle().base);
  after.put(2);
  device::PointerInfo now;
  ASSERT_OK(open(cache, after, now));
  EXPECT_EQ(2, first_byte(now.base));
  EXPECT_EQ(1, first_byte(old.base));
  EXPECT_EQ(2u, cache.handles());
  EXPECT_OK(cache.close(old));
  EXPECT_EQ(2, first_byte(now.base));
  EXPECT_OK(cache.close(now));
}

TEST(HandleCache, KeepsItsLimits) {
  for (const HandleCache::Limits& limits :
       {HandleCache::Limits{.handles = 2}, HandleCache::Limits{.mapped_bytes = 2 * kBytes}}) {
    HandleCache cache(limits);
    const SharedAllocation a, b, c;
    device::PointerInfo opened[3];
    ASSERT_OK(open(cache, a, opened[0]));
    ASSERT_OK(open(cache, b, opened[1]));
    EXPECT_CODE(unsupported, open(cache, c, opened[2]));
    EXPECT_EQ(1u, cache.counters().refusals);
    EXPECT_OK(cache.close(opened[0]));
    EXPECT_OK(open(cache, c, opened[2]));
    EXPECT_OK(cache.close(opened[1]));
    EXPECT_OK(cache.close(opened[2]));
  }
}

TEST(HandleCache, WhatCannotBeOpenedIsRefusedAndForgotten) {
  HandleCache cache;
  const SharedAllocation shared;
  device::PointerInfo memory;
  EXPECT_FALSE(
      cache.open(device::host_runtime(), 0, shared.handle(), Descriptor(), Opening::allowed, memory)
          .ok());
  EXPECT_EQ(1u, cache.counters().refusals);
  EXPECT_EQ(0u, cache.handles());
  EXPECT_OK(open(cache, shared, memory));
  EXPECT_OK(cache.close(memory));
}

}  // namespace
}  // namespace accord::node
