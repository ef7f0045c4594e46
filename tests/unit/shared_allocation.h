// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of the host runtime, registered as if for another process.
#pragma once

#include "forwarding_runtime.h"
#include "node/registration.h"
#include "support.h"

namespace accord::test {

class SharedAllocation {
 public:
  static constexpr std::size_t kBytes = 10000;

  SharedAllocation() {
    EXPECT_OK(device::host_runtime().allocate(0, device::MemoryKind::device, kBytes, address_));
    device::PointerInfo info;
    EXPECT_TRUE(device::host_runtime().classify(address_, info));
    EXPECT_OK(registration_.make(device::host_runtime(), info, 1));
  }
  ~SharedAllocation() { free(); }
  SharedAllocation(const SharedAllocation&) = delete;
  SharedAllocation& operator=(const SharedAllocation&) = delete;

  const node::MemoryHandle& handle() const { return registration_.handle(); }
  const node::Descriptor& descriptor() const { return descriptor_; }
  bool exists() const { return registration_.exists(); }
  void put(unsigned char value) { copy(address_, &value); }
  void free() {
    if (address_ != nullptr) EXPECT_OK(device::host_runtime().free(address_));
    address_ = nullptr;
  }

  static void copy(void* dst, const void* src) {
    const device::Copy one{dst, src, 1};
    EXPECT_OK(device::host_runtime().copy(0, {&one, 1}));
  }

 private:
  void* address_ = nullptr;
  node::Registration registration_;
  const node::Descriptor& descriptor_ = registration_.descriptor();
};

inline int first_byte(const void* start) {
  unsigned char value = 0;
  SharedAllocation::copy(&value, start);
  return value;
}

}  // namespace accord::test
