// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Short copies by the kernel that inbox exchanges keep on a device (device/inbox_server.h): it
// begins sooner than a copy engine does, and reaches other devices and page-locked memory. Knows no
// vendor. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/status.h"
#include "device/device_runtime.h"
#include "device/inbox_server.h"
#include "device/layout_copy.h"

namespace accord::device {

class QuickCopy {
 public:
  // From about there on an engine's rate is worth more.
  static constexpr std::size_t kBytesMax = std::size_t{256} << 10;

  explicit QuickCopy(std::size_t most_bytes = kBytesMax) : most_bytes_(most_bytes) {}
  ~QuickCopy();
  QuickCopy(const QuickCopy&) = delete;
  QuickCopy& operator=(const QuickCopy&) = delete;

  // Copies one run of bytes on `device`, always the same one, or between it and page-locked memory,
  // and waits for that. `done` says no where it cannot, and nothing has been copied.
  Status run(DeviceRuntime& runtime, int device, const Copy& copy, bool& done);

 private:
  enum class Place { nowhere, device, host };

  Status serve(InboxTicket& ticket, bool& done);
  Status open(DeviceRuntime& runtime, int device);
  Place place_of(const void* start, std::size_t size_bytes) const noexcept;

  std::mutex mutex_;
  std::size_t most_bytes_;
  bool is_opened_ = false;  // or cannot be
  DeviceRuntime* runtime_ = nullptr;
  InboxServer* server_ = nullptr;  // null: there is none
  void* inbox_ = nullptr;          // of this rank alone: it sends to itself
  std::uint64_t inbox_buffer_id_ = 0;
  std::uint32_t epoch_ = 0;
};

// Copies a batch between memory of `device` and staging memory by the kernel, and waits for that,
// if it is one short run and such copies come in rows: to launch the kernel takes longer than a
// copy. False: nothing has been copied.
bool stage_quickly(DeviceRuntime& runtime, int device, const CopyBatch& batch);
// Gives back the device memory that this takes. It may begin anew.
void end_quick_staging() noexcept;

}  // namespace accord::device
