// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The host runtime of a program that resets its device, as cudaDeviceReset does: what was made or
// opened by way of this is gone then, and its addresses are given out again. Memory that a test
// takes from the host runtime itself stays. As handles of CUDA's interprocess functions do, those
// that were opened once open without a descriptor.
#pragma once

#include <unistd.h>

#include <map>
#include <set>
#include <vector>

#include "forwarding_runtime.h"
#include "support.h"

namespace accord::test {

class ResetRuntime final : public ForwardingRuntime {
 public:
  ~ResetRuntime() override {
    for (const auto& [handle, descriptor] : descriptors_) ::close(descriptor);
  }

  void reset() {
    ++life_;
    for (void* pointer : made_) EXPECT_OK(device::host_runtime().free(pointer));
    for (void* pointer : opened_) EXPECT_OK(device::host_runtime().close_memory(pointer));
    made_.clear();
    opened_.clear();
  }
  std::size_t opened() const { return opened_.size(); }

  std::uint64_t context_life(int) noexcept override { return life_; }
  Status allocate(int device, device::MemoryKind kind, std::size_t size_bytes,
                  void*& pointer) override {
    ACCORD_TRY(ForwardingRuntime::allocate(device, kind, size_bytes, pointer));
    made_.insert(pointer);
    return {};
  }
  Status free(void* pointer) override {
    EXPECT_EQ(1U, made_.erase(pointer)) << "memory of the program's";
    return ForwardingRuntime::free(pointer);
  }
  Status open_memory(int device, const device::ExportedMemory& exported, void*& pointer) override {
    device::ExportedMemory handle{.bytes = exported.bytes,
                                  .file_descriptor = exported.file_descriptor};
    const auto known = descriptors_.find(exported.bytes);
    if (handle.file_descriptor < 0 && known != descriptors_.end())
      handle.file_descriptor = known->second;
    ACCORD_TRY(ForwardingRuntime::open_memory(device, handle, pointer));
    if (known == descriptors_.end())
      descriptors_.emplace(exported.bytes, ::dup(handle.file_descriptor));
    opened_.insert(pointer);
    return {};
  }
  Status close_memory(void* pointer) override {
    EXPECT_EQ(1U, opened_.erase(pointer)) << "memory of the program's";
    return ForwardingRuntime::close_memory(pointer);
  }

 private:
  std::uint64_t life_ = 1;
  std::set<void*> made_;
  std::set<void*> opened_;
  std::map<std::vector<std::byte>, int> descriptors_;
};

}  // namespace accord::test
