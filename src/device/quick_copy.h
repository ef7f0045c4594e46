// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Short copies by the kernel that inbox exchanges keep on a device (device/inbox_server.h): it
// begins sooner than a copy engine does, and reads from other devices. Knows no MPI and no vendor.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/status.h"
#include "device/device_runtime.h"
#include "device/inbox_server.h"

namespace accord::node {

class QuickCopy {
 public:
  // From about there on an engine's rate is worth more.
  static constexpr std::size_t kBytesMax = std::size_t{256} << 10;

  QuickCopy() = default;
  ~QuickCopy();
  QuickCopy(const QuickCopy&) = delete;
  QuickCopy& operator=(const QuickCopy&) = delete;

  // Copies one run of bytes on `device`, always the same one, and waits for that. `done` says no
  // where it cannot, and nothing has been copied.
  Status run(device::DeviceRuntime& runtime, int device, const device::Copy& copy, bool& done);

 private:
  Status serve(device::InboxTicket& ticket, bool& done);
  Status open(device::DeviceRuntime& runtime, int device);
  bool reaches(const void* start, std::size_t size_bytes) const noexcept;

  std::mutex mutex_;
  bool is_opened_ = false;  // or cannot be
  device::DeviceRuntime* runtime_ = nullptr;
  device::InboxServer* server_ = nullptr;  // null: there is none
  void* inbox_ = nullptr;                  // of this rank alone: it sends to itself
  std::uint32_t epoch_ = 0;
};

}  // namespace accord::node
