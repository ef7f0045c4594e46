// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A reduction of one element, to learn whether kernels reach some memory while a call can still go
// another way. A kernel of the program may fill the device for as long as it likes, so a trial is
// not waited for without end. Not thread-safe.
#pragma once

#include <chrono>

#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::node {

class Trial {
 public:
  inline static std::chrono::milliseconds patience{10'000};  // tests have less

  // Once the one before has ended. `done` says no where it has not ended within the time: its
  // kernel will run some day, and what it touches must stay until then.
  Status run(device::DeviceRuntime& runtime, int device, const device::Reduction& reduction,
             bool& done);
  // Nothing of it is under way.
  bool ended() noexcept;
  // What it has shown, also one that ended after it was given up on.
  const Status& outcome() const noexcept { return outcome_; }
  // What to say of memory of which it is not known.
  static Status unended() {
    return {StatusCode::unsupported, "node: the device has run no kernel of this library in time"};
  }

 private:
  Status poll(bool& done);

  device::DeviceRuntime* runtime_ = nullptr;
  device::CopyTicket ticket_;
  Status outcome_;
};

}  // namespace accord::node
