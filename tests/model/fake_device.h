// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two pretend accelerators. A device pointer lies in address space that nobody may touch; its bytes
// are elsewhere and only this file knows where. Copies in flight end after a random number of polls
// and read their source sooner or later in between; the n-th copy can be made to fail. The
// instances live as long as the process, since the staging pool remembers every runtime it has
// seen.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device_runtime.h"
#include "scheduler.h"

namespace accord::model {

class FakeDevice final : public device::DeviceRuntime {
 public:
  static constexpr std::size_t kCount = 2;
  static FakeDevice& get(std::size_t index);
  // The device that owns `pointer`, or null.
  static FakeDevice* owner(const void* pointer);
  static device::PointerInfo classify_any(const void* pointer);

  // Before a run: whose generator and failures to use (null: after it), and whether copies may take
  // long.
  void attach(Scheduler* scheduler);
  // The copy after the next `copies` fails; negative: none.
  void fail_after(long copies) { fail_after_.store(copies); }

  // Where the bytes behind a device pointer are, for the tests themselves.
  std::byte* behind(const void* pointer) const;

  std::size_t live_allocations() const;
  std::size_t live_host_allocations() const noexcept { return host_allocations_.load(); }
  std::size_t copies_in_flight() const;

  const char* name() const noexcept override { return "fake"; }
  bool active() noexcept override { return true; }
  bool present() noexcept override { return true; }
  bool classify(const void* pointer, device::PointerInfo& info) noexcept override;
  Status copy(int device, std::span<const device::Copy> copies) override;
  Status copy_begin(int device, std::span<const device::Copy> copies,
                    device::CopyTicket& ticket) override;
  Status copy_done(device::CopyTicket& ticket, bool& done) override;
  Status host_allocate(std::size_t size_bytes, void*& pointer) override;
  void host_free(void* pointer, std::size_t size_bytes) noexcept override;
  Status allocate(int device, device::MemoryKind kind, std::size_t size_bytes,
                  void*& pointer) override;
  Status free(void* pointer) override;
  Status export_memory(const void*, device::ExportedMemory&) override { return unsupported(); }
  Status open_memory(int, const device::ExportedMemory&, void*&) override { return unsupported(); }
  Status close_memory(void*) override { return unsupported(); }
  int device_count() override { return 1; }
  Status describe(int, device::DeviceDescription&) override { return unsupported(); }

 private:
  struct Allocation {
    std::size_t size_bytes;
    device::MemoryKind kind;
  };

  FakeDevice();
  ~FakeDevice() override = default;
  static Status unsupported() { return {StatusCode::unsupported, "not modelled"}; }
  bool contains(const void* pointer) const noexcept;
  void* reachable(const void* pointer, std::size_t span_bytes);
  void move(const device::Copy& copy);
  Status next_copy_status();
  std::uint64_t random(std::uint64_t bound);
  void complain(const char* what);

  struct Pending;

  std::byte* base_ = nullptr;  // what users hold: no access
  std::unique_ptr<std::byte[]> bytes_;
  mutable std::mutex mutex_;
  std::map<std::size_t, Allocation> allocations_;  // by offset
  std::size_t next_offset_ = 0;
  std::atomic<Scheduler*> scheduler_{nullptr};
  std::atomic<long> fail_after_{-1};
  std::atomic<std::size_t> host_allocations_{0};
  std::map<void*, std::unique_ptr<Pending>> in_flight_;
};

}  // namespace accord::model
