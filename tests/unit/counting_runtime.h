// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The host runtime, which counts copies, and fails to begin them if it is told to.
#pragma once

#include "forwarding_runtime.h"

namespace accord::test {

class CountingRuntime final : public ForwardingRuntime {
 public:
  int rows = 0;
  int calls = 0;

  Status copy(int device, std::span<const device::Copy> copies) override {
    ++calls;
    for (const device::Copy& one : copies) rows += static_cast<int>(one.rows);
    return ForwardingRuntime::copy(device, copies);
  }
  Status copy_begin(int device, std::span<const device::Copy> copies,
                    device::CopyTicket& ticket) override {
    ++calls;
    if (fails) return {StatusCode::device_error, "no"};
    return ForwardingRuntime::copy_begin(device, copies, ticket);
  }
  bool fails = false;
};

}  // namespace accord::test
