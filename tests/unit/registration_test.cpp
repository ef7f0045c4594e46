// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory that its owner registers and peers open, here of the same process: which allocation it is
// of, what cannot be had, and how long it stays open.
#include "node/registration.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "node/handle_cache.h"
#include "shared_allocation.h"

namespace accord::node {
namespace {

using test::first_byte;
using test::SharedAllocation;

Status open(PeerMemory& memory, const SharedAllocation& shared,
            Opening opening = Opening::allowed) {
  return memory.open(device::host_runtime(), 0, shared.handle(), shared.descriptor(), opening);
}

TEST(Registration, IsOpenUntilTheReaderGoes) {
  const std::size_t handles = handle_cache().handles();
  SharedAllocation shared;
  shared.put(42);
  {
    PeerMemory first;
    EXPECT_CODE(unsupported, open(first, shared, Opening::no));
    ASSERT_OK(open(first, shared));
    PeerMemory second = std::move(first);
    EXPECT_FALSE(first.is_open());
    EXPECT_EQ(42, first_byte(second.start()));
    EXPECT_OK(open(first, shared, Opening::no));
    EXPECT_EQ(first.start(), second.start());
    second.close();
    EXPECT_EQ(42, first_byte(first.start()));
    EXPECT_EQ(handles + 1, handle_cache().handles());
  }
  EXPECT_EQ(handles, handle_cache().handles());
}

// The owner sees that it is gone; what a peer has open stays the old one until it lets go.
TEST(Registration, AnAddressUsedAgainIsAnotherAllocation) {
  const std::size_t handles = handle_cache().handles();
  std::optional<SharedAllocation> before(std::in_place);
  before->put(1);
  PeerMemory old;
  ASSERT_OK(open(old, *before));
  EXPECT_TRUE(before->exists());
  before->free();
  EXPECT_FALSE(before->exists());
  SharedAllocation after;
  after.put(2);
  ASSERT_EQ(before->handle().base, after.handle().base);
  EXPECT_FALSE(before->exists());
  EXPECT_TRUE(after.exists());
  PeerMemory now;
  EXPECT_CODE(unsupported, open(now, after, Opening::no));
  ASSERT_OK(open(now, after));
  EXPECT_EQ(2, first_byte(now.start()));
  EXPECT_EQ(1, first_byte(old.start()));
  old.close();
  EXPECT_EQ(handles + 1, handle_cache().handles());
  EXPECT_EQ(2, first_byte(now.start()));
}

TEST(Registration, WhatCannotBeExportedIsNotMade) {
  void* pinned = nullptr;
  ASSERT_OK(device::host_runtime().allocate(0, device::MemoryKind::pinned, 100, pinned));
  device::PointerInfo info;
  ASSERT_TRUE(device::host_runtime().classify(pinned, info));
  Registration registration;
  EXPECT_CODE(unsupported, registration.make(device::host_runtime(), info, 1));
  EXPECT_FALSE(registration.is_made());
  EXPECT_FALSE(registration.exists());
  EXPECT_FALSE(registration.descriptor().is_open());
  EXPECT_OK(device::host_runtime().free(pinned));
  MemoryHandle handle;
  EXPECT_CODE(unsupported, handle.put(std::vector<std::byte>(MemoryHandle::kBytesMax + 1)));
}

// As of a vendor that does not number its allocations.
class RuntimeWithoutIds final : public test::ForwardingRuntime {
  bool classify(const void* pointer, device::PointerInfo& info) noexcept override {
    const bool is_known = ForwardingRuntime::classify(pointer, info);
    info.runtime = this;
    info.buffer_id = 0;
    return is_known;
  }
};

// Another allocation lies at the address of one that was, as after a reset of the device; or nobody
// could tell them apart.
TEST(Registration, WhatIsNotThereAnyMoreIsNotMade) {
  device::DeviceRuntime& runtime = device::host_runtime();
  void* address = nullptr;
  ASSERT_OK(runtime.allocate(0, device::MemoryKind::device, 100, address));
  device::PointerInfo info;
  ASSERT_TRUE(runtime.classify(address, info));
  Registration registration;
  EXPECT_OK(registration.make(runtime, info, 1));
  RuntimeWithoutIds without_ids;
  device::PointerInfo unnumbered;
  ASSERT_TRUE(static_cast<device::DeviceRuntime&>(without_ids).classify(address, unnumbered));
  EXPECT_CODE(unsupported, registration.make(without_ids, unnumbered, 1));
  ASSERT_OK(runtime.free(address));
  EXPECT_CODE(unsupported, registration.make(runtime, info, 1));
  void* other = nullptr;
  ASSERT_OK(runtime.allocate(0, device::MemoryKind::device, 100, other));
  ASSERT_EQ(address, other);
  EXPECT_CODE(unsupported, registration.make(runtime, info, 1));
  EXPECT_FALSE(registration.is_made());
  EXPECT_OK(runtime.free(other));
}

// Without its descriptor, of another runtime, or of a length that cannot be.
TEST(Registration, WhatCannotBeOpenedLeavesNothingOpen) {
  const std::size_t handles = handle_cache().handles();
  const SharedAllocation shared;
  PeerMemory memory;
  EXPECT_FALSE(memory.open(device::host_runtime(), 0, shared.handle(), Descriptor()).ok());
  MemoryHandle foreign = shared.handle();
  ++foreign.vendor;
  EXPECT_CODE(unsupported, memory.open(device::host_runtime(), 0, foreign, shared.descriptor()));
  MemoryHandle too_long = shared.handle();
  too_long.length_bytes = ~std::uint32_t{0};
  EXPECT_EQ(MemoryHandle::kBytesMax, too_long.told().size());
  EXPECT_FALSE(memory.open(device::host_runtime(), 0, too_long, shared.descriptor()).ok());
  EXPECT_FALSE(memory.is_open());
  EXPECT_EQ(handles, handle_cache().handles());
  EXPECT_OK(open(memory, shared));
}

TEST(Registration, OwnMemoryIsReferredToAndKeptMemoryStays) {
  const std::size_t handles = handle_cache().handles();
  SharedAllocation shared;
  shared.put(7);
  {
    PeerMemory own;
    MemoryHandle foreign = shared.handle();
    ++foreign.vendor;
    EXPECT_CODE(unsupported, own.refer(device::host_runtime(), foreign));
    EXPECT_OK(own.refer(device::host_runtime(), shared.handle()));
    EXPECT_EQ(7, first_byte(own.start()));
    EXPECT_EQ(handles, handle_cache().handles());
    PeerMemory kept;
    ASSERT_OK(open(kept, shared));
    kept.keep();
  }
  EXPECT_EQ(handles + 1, handle_cache().handles());
}

}  // namespace
}  // namespace accord::node
