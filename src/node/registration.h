// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Lets other processes of the node reach an allocation of this one: the one way of all that share
// device memory. The owner makes a Registration and gives readers its handle, by shared memory or a
// message; a descriptor that belongs to it is in their sockets before (descriptor_port.h). Each
// reader makes a PeerMemory of the handle. The owner has nothing to undo: a Registration may go
// once its descriptor has been sent. But a mapping keeps memory that was freed, until its
// PeerMemory goes:
// - Offers (collectives, messages): programs free buffers between calls. So the owner looks whether
//   one exists, withdraws it if not, and its peers close it in their next call.
// - A partitioned request, or a window: MPI leaves it the buffer until it is freed itself. So it
//   registers and opens once, and never looks again.
// - Group: parts of the device pool, which wait until all peers have closed them.
// What cannot be exported or opened leaves nothing behind: the caller goes another way. Thread-safe
// but for calls on one object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/descriptor.h"

namespace accord::node {

// Names an allocation to other processes: plain bytes. One that was freed and made anew at the same
// address has another buffer id.
struct MemoryHandle {
  static constexpr std::size_t kBytesMax = 192;
  std::uint64_t process = 0;  // its owner's PortAddress::process
  std::uint64_t vendor = 0;   // its runtime's name, hashed
  std::uint64_t base = 0;     // where it begins there
  std::uint64_t buffer_id = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t with_descriptor = 0;
  std::uint32_t length_bytes = 0;  // of what the runtime says
  std::byte bytes[kBytesMax]{};

  static std::uint64_t vendor_of(const device::DeviceRuntime& runtime);
  Status put(std::span<const std::byte> told);
  // Within its room, whatever a peer says.
  std::span<const std::byte> told() const noexcept {
    return {bytes, std::min<std::size_t>(length_bytes, kBytesMax)};
  }
};

// The owner's side.
class Registration {
 public:
  Registration() = default;
  // Exports the whole allocation of `memory`, which is the process's `process`. Unsupported where
  // the memory cannot be exported, or is not there any more.
  Status make(device::DeviceRuntime& runtime, const device::PointerInfo& memory,
              std::uint64_t process);

  bool is_made() const noexcept { return runtime_ != nullptr; }
  const MemoryHandle& handle() const noexcept { return handle_; }
  // What every reader needs beside the handle, if it is open; to be closed once all have it.
  Descriptor& descriptor() noexcept { return descriptor_; }
  // Of this very allocation.
  bool is_of(const device::PointerInfo& memory) const noexcept {
    return handle_.base == reinterpret_cast<std::uint64_t>(memory.base) &&
           handle_.buffer_id == memory.buffer_id;
  }
  // It has not been freed, also not to make another one at its address. Asks the driver.
  bool exists() const noexcept;

 private:
  device::DeviceRuntime* runtime_ = nullptr;
  MemoryHandle handle_;
  Descriptor descriptor_;
};

// Whether the driver may be asked for what it might let wait for kernels.
enum class Opening { allowed, no };

// A reader's side: an allocation of a peer, open here until this goes. Those of one allocation
// share a mapping (handle_cache.h).
class PeerMemory {
 public:
  // For `device` of this process. The descriptor stays the caller's. Without leave to ask the
  // driver only what is open here already can be had.
  Status open(device::DeviceRuntime& runtime, int device, const MemoryHandle& handle,
              const Descriptor& descriptor, Opening opening = Opening::allowed);
  // Memory of this process itself, where nothing has to be opened; refused as by open.
  Status refer(const device::DeviceRuntime& runtime, const MemoryHandle& handle);
  void close() noexcept { start_.reset(); }
  // It stays open for the life of this process.
  void keep() noexcept { start_.get_deleter().is_mapped = false; }

  bool is_open() const noexcept { return start_ != nullptr; }
  // Of what is open: this process has not reset its device since, which would have closed it.
  bool exists() const noexcept { return device::exists(start_.get_deleter().memory); }
  std::byte* start() const noexcept { return start_.get(); }  // of the allocation; null: not open

 private:
  struct Close {
    bool is_mapped;  // by the handle cache
    device::PointerInfo memory;
    void operator()(std::byte* start) const noexcept;
  };
  std::unique_ptr<std::byte, Close> start_;
};

}  // namespace accord::node
