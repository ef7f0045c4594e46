// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What it takes a network adapter to reach device memory, on a test bed whose "device" memory is
// host memory and whose adapters are none. The network's own links are real, if slow, and have the
// rate at which the adapter reaches host memory. Called by net/paced_worker.cpp.
#pragma once

#include <chrono>
#include <cstddef>

#include "device/adapter_reach.h"

namespace accord::device {

class AdapterModel {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // An adapter begins to read these bytes of device memory, once it has read what others asked for.
  // Says when they may be given to the network so that their last byte leaves as it has been read.
  virtual Moment begin_read(int device, std::size_t size_bytes) = 0;
  // The last of these bytes has come by the network: when it is in device memory. They came no
  // faster than the network sends or, out of device memory, than an adapter reads.
  enum class From { host, device };
  virtual Moment end_write(int device, std::size_t size_bytes, From from) = 0;
  // The same of a device elsewhere. `free`: when that has taken what came before; kept by the
  // caller.
  virtual Moment end_write_at_peer(Moment& free, std::size_t size_bytes) = 0;
  virtual AdapterReach reach() const noexcept = 0;

 protected:
  ~AdapterModel() = default;
};

}  // namespace accord::device
