// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Short work on memory that a device's kernels reach, its own, a peer's or page-locked: copies that
// go together, or an update of elements. A kernel that stays on the device does it
// (device/inbox_server.h), since it begins sooner than a copy engine. Knows no vendor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "base/status.h"
#include "device/call_credit.h"
#include "device/device_runtime.h"
#include "device/layout_copy.h"

namespace accord::device {

class InboxServer;
struct InboxTicket;

constexpr std::size_t kDirectCopiesMax = 64;  // rows of all copies
// Of all together: from about there on an engine's rate is worth more (2 x H200, half a round trip
// of 2 MiB: 13 us instead of 18, of 4 MiB as long).
constexpr std::size_t kDirectCopyBytesMax = std::size_t{2} << 20;
// Of one element that is compared.
constexpr std::size_t kDirectElementBytesMax = 16;

// Of consecutive elements: target[i] = target[i] op operand[i]. Nobody else may change them
// meanwhile. What was there goes to `result`, where there is one. No two of these overlap.
struct DirectUpdate {
  void* target = nullptr;
  const void* operand = nullptr;  // null: nothing is changed
  const void* compare = nullptr;  // one element is replaced only where its bytes are these
  void* result = nullptr;
  std::size_t size_bytes = 0;
  ReduceOp op = ReduceOp::none;     // none: replaces
  Element element = Element::none;  // of an operation; has_direct_update
};

// Whether a kernel of ours that can reduce can update so.
constexpr bool has_direct_update(ReduceOp op, Element element) {
  return is_defined(op, element) && kDirectElementBytesMax % element_bytes(element) == 0;
}

// What of copies that go together such a kernel is asked to do: ACCORD_COPY_KERNEL_BYTES.
std::size_t direct_copy_bytes() noexcept;

// One of both.
struct DirectWork {
  std::span<const Copy> copies = {};  // a server gets them row by row
  const DirectUpdate* update = nullptr;
  // Some of what is written is memory of others than the device.
  bool leaves_device = true;
};

// Does such work on one device. Thread-safe.
class DirectWorker {
 public:
  // The one of that device; never destroyed.
  static DirectWorker& of(DeviceRuntime& runtime, int device);

  DirectWorker(DeviceRuntime& runtime, int device) : runtime_(runtime), device_(device) {}

  // With each operation that it might do: whether they come often enough for a kernel, and no other
  // process would have to wait for that.
  bool is_wanted();
  // Whether kernels of the device reach all of [start, start + size_bytes), which is in that
  // memory. A kernel that leaves an allocation takes the program's context with it.
  bool reaches(const PointerInfo& memory, const void* start, std::size_t size_bytes);
  // So many processes, this one among them, may do such work on the device side by side.
  void share_with(int processes);

  // Does it, and waits for that. `done` says no where it has to go another way, and nothing is
  // done: there is no such kernel, or it is busy.
  Status run(const DirectWork& work, bool& done);
  // Copies whose ends may be anybody's memory, into this device's or page-locked. `done` says no,
  // too, where they are too many or too long, or are not all reached.
  Status copy(std::span<const Copy> copies, bool& done);

 private:
  InboxServer* server();
  bool reaches_all(const InboxServer& server, std::span<const Copy> copies, bool& leaves_device);
  static Status serve(InboxServer& server, InboxTicket& ticket, bool& done);

  DeviceRuntime& runtime_;
  const int device_;
  CallCredit credit_;
  std::mutex mutex_;    // held while there is work
  std::mutex opening_;  // guards what follows while it changes
  std::atomic<bool> is_opened_{false};
  std::atomic<std::uint64_t> life_{0};  // DeviceRuntime::context_life, then
  std::atomic<InboxServer*> server_{nullptr};
  std::atomic<int> sharers_{1};
};

// Copies a batch between memory of `device` and staging memory so, if it is short and such work
// comes in rows. False: nothing has been copied.
bool stage_quickly(DeviceRuntime& runtime, int device, const CopyBatch& batch);

}  // namespace accord::device
