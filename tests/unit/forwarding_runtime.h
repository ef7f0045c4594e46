// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The embedded host runtime behind a class of its own, so that a test can look at some calls, or
// refuse them.
#pragma once

#include "device/device_runtime.h"

namespace accord::device {
DeviceRuntime& host_runtime();
}

namespace accord::test {

class ForwardingRuntime : public device::DeviceRuntime {
 public:
  Status open_memory(int device, const device::ExportedMemory& exported, void*& pointer) override {
    return inner_.open_memory(device, exported, pointer);
  }
  Status close_memory(void* pointer) override { return inner_.close_memory(pointer); }
  Status free(void* pointer) override { return inner_.free(pointer); }

  const char* name() const noexcept override { return inner_.name(); }
  bool active() noexcept final { return inner_.active(); }
  bool present() noexcept final { return inner_.present(); }
  bool on_machine() noexcept final { return inner_.on_machine(); }
  bool classify(const void* pointer, device::PointerInfo& info) noexcept override {
    return inner_.classify(pointer, info);
  }
  Status copy(int device, std::span<const device::Copy> copies) override {
    return inner_.copy(device, copies);
  }
  Status copy_begin(int device, std::span<const device::Copy> copies,
                    device::CopyTicket& ticket) override {
    return inner_.copy_begin(device, copies, ticket);
  }
  Status copy_done(device::CopyTicket& ticket, bool& done) override {
    return inner_.copy_done(ticket, done);
  }
  Status host_allocate(std::size_t size_bytes, void*& pointer) final {
    return inner_.host_allocate(size_bytes, pointer);
  }
  void host_free(void* pointer, std::size_t size_bytes) noexcept final {
    inner_.host_free(pointer, size_bytes);
  }
  Status host_pin(void* pages, std::size_t size_bytes) final {
    return inner_.host_pin(pages, size_bytes);
  }
  void host_unpin(void* pages) noexcept final { inner_.host_unpin(pages); }
  Status allocate(int device, device::MemoryKind kind, std::size_t size_bytes,
                  void*& pointer) override {
    return inner_.allocate(device, kind, size_bytes, pointer);
  }
  Status export_memory(const void* pointer, device::ExportedMemory& exported) final {
    return inner_.export_memory(pointer, exported);
  }
  int device_count() final { return inner_.device_count(); }
  int device_in_use() noexcept final { return 0; }
  Status describe(int device, device::DeviceDescription& description) final {
    return inner_.describe(device, description);
  }

 private:
  device::DeviceRuntime& inner_ = device::host_runtime();
};

// One that has kernels, which do not run while something else fills the device.
class KernelRuntime : public ForwardingRuntime {
 public:
  bool is_busy = false;

  bool can_reduce(device::ReduceOp, device::Element) final { return true; }
  Status reduce_begin(int device, const device::Reduction& reduction,
                      device::CopyTicket& ticket) final {
    if (!is_busy) return device::host_runtime().reduce_begin(device, reduction, ticket);
    ticket.handle = this;
    return {};
  }
  Status copy_done(device::CopyTicket& ticket, bool& done) final {
    if (ticket.handle != this) return ForwardingRuntime::copy_done(ticket, done);
    done = !is_busy;
    return {};
  }
};

}  // namespace accord::test
