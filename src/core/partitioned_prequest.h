// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned request in the memory of a device, for kernels (accord/partitioned_layout.h), with
// the counters that they count in.
#pragma once

#include <cstddef>

#include "accord/partitioned_layout.h"
#include "base/status.h"
#include "core/device_scrap.h"
#include "device/device_runtime.h"

namespace accord::core {

class DevicePrequest {
 public:
  DevicePrequest(device::DeviceRuntime& runtime, int device) : runtime_(runtime), device_(device) {}
  DevicePrequest(const DevicePrequest&) = delete;
  DevicePrequest& operator=(const DevicePrequest&) = delete;

  // `shown` but for the counters, which start at zero: of a sender, as many as `transfers` too.
  Status create(accord_prequest shown, std::size_t transfers);
  // While kernels may be using it: what `shown` says of the other ranks.
  Status connect(const accord_prequest& shown);

  accord_prequest* for_kernels() const noexcept;

 private:
  Status write(std::size_t offset_bytes, const void* bytes, std::size_t size_bytes);

  device::DeviceRuntime& runtime_;
  int device_;
  DeviceScrap memory_;
};

}  // namespace accord::core
