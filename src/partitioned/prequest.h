// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned request in the memory of a device, for kernels (accord/partitioned_layout.h), with
// the counters that they count in. What the host says of it lies in page-locked memory first, where
// kernels find it meanwhile, and goes to the device by a copy that nobody waits for. Both kinds of
// memory are kept for the next one: taking some of the driver's costs a hundred microseconds, and
// would wait for kernels. Calls on one object are made one at a time.
#pragma once

#include <cstddef>
#include <optional>

#include "accord/partitioned_layout.h"
#include "base/status.h"
#include "device/device_runtime.h"

namespace accord::partitioned {

class DevicePrequest {
 public:
  // Where one lies. Its image is for good that of the memory.
  struct Place {
    std::byte* memory = nullptr;
    accord_prequest* image = nullptr;
    const std::byte* zeros = nullptr;  // as many as the memory has bytes
  };

  DevicePrequest(device::DeviceRuntime& runtime, int device) : runtime_(runtime), device_(device) {}
  ~DevicePrequest();
  DevicePrequest(const DevicePrequest&) = delete;
  DevicePrequest& operator=(const DevicePrequest&) = delete;

  // `shown` but for the counters, which start at zero: of a sender, as many as `transfers` too.
  // Asks nothing of the driver where there is a place left.
  Status create(accord_prequest shown, std::size_t transfers);
  // While kernels may be using it: what `shown` says of the other ranks.
  void connect(const accord_prequest& shown);
  // After a round that has not ended well, of which some marks may have been counted.
  Status forget_marks();
  // Goes on with bringing to the device what has been said. What cannot be stays where it is.
  void progress();

  accord_prequest* for_kernels() const noexcept;

 private:
  void say(std::uint32_t state);

  device::DeviceRuntime& runtime_;
  int device_;
  std::size_t size_bytes_ = 0;
  Place place_;
  bool is_due_ = false;  // the image is newer than what is on the device
  device::CopyTicket ticket_;
  std::optional<accord_prequest> next_;  // of the other ranks, once the copy is through
};

}  // namespace accord::partitioned
