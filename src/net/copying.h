// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A copy between memory of a runtime and host memory that goes on while others do.
#pragma once

#include "device/device_runtime.h"

namespace accord::net {

class Copying {
 public:
  Copying() = default;
  ~Copying() { finish(); }
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;
  Copying(Copying&& other) noexcept;
  Copying& operator=(Copying&& other) noexcept;

  // `where`: of the end that is not the host's. On the host alone it is done at once.
  Status begin(const device::PointerInfo& where, void* to, const void* from,
               std::size_t size_bytes);
  // Whether it has ended, or none has begun. After an error it has, too.
  Status poll(bool& done);
  bool is_under_way() const noexcept { return ticket_.handle != nullptr; }
  void finish() noexcept;

 private:
  device::DeviceRuntime* runtime_ = nullptr;
  device::CopyTicket ticket_;
};

}  // namespace accord::net
