// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two pretend accelerators. A device pointer lies in address space that nobody may touch; its bytes
// are elsewhere and only this file knows where. The copies of a batch, and a reduction, are done in
// any order and piece by piece until a random number of polls has gone by; the n-th batch can be
// made to fail. Exported memory is opened at an address of its own, which is of no more use once
// the owner has freed the memory. What is freed gives its address to what is made next, more often
// than not. Page-locked memory is the CPU's too. The instances live as long
// as the process, since the staging pool remembers every runtime it has seen.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "device/device_runtime.h"
#include "exchange_options.h"
#include "fake_inbox.h"
#include "scheduler.h"
#include "sight.h"

namespace accord::model {

class FakeDevice final : public device::DeviceRuntime {
 public:
  static constexpr std::size_t kCount = 2;
  static constexpr std::uint64_t kPollsMax = 6;  // until a batch has ended
  static FakeDevice& get(std::size_t index);
  // The device that owns `pointer`, or null.
  static FakeDevice* owner(const void* pointer);
  static device::PointerInfo classify_any(const void* pointer);

  // Before a run: whose generator and failures to use (null: after it), and what to refuse.
  void attach(Scheduler* scheduler, const ExchangeOptions& options = {});
  // The copy after the next `copies` fails; negative: none.
  void fail_after(long copies) { fail_after_.store(copies); }
  // The same of allocations of the library's own.
  void refuse_memory_after(long allocations) { refuse_after_.store(allocations); }

  // The bytes behind a device pointer (not an opened one), for the tests themselves.
  std::byte* behind(const void* pointer) const;

  std::size_t live_allocations() const;
  std::size_t live_host_allocations() const noexcept { return host_allocations_.load(); }
  std::size_t copies_in_flight() const {
    const HiddenLock locked(mutex_);
    return in_flight_.size();
  }
  bool inbox_servers_idle() const;

  const char* name() const noexcept override { return "fake"; }
  bool active() noexcept override { return true; }
  bool present() noexcept override { return true; }
  bool classify(const void* pointer, device::PointerInfo& info) noexcept override;
  Status copy(int device, std::span<const device::Copy> copies) override;
  Status copy_begin(int device, std::span<const device::Copy> copies,
                    device::CopyTicket& ticket) override;
  Status copy_done(device::CopyTicket& ticket, bool& done) override;
  bool can_reduce(device::ReduceOp op, device::Element element) override;
  Status reduce_begin(int device, const device::Reduction& reduction,
                      device::CopyTicket& ticket) override;
  Status inbox_server(int device, device::InboxServer*& server) override;
  Status host_allocate(std::size_t size_bytes, void*& pointer) override;
  void host_free(void* pointer, std::size_t size_bytes) noexcept override;
  Status allocate(int device, device::MemoryKind kind, std::size_t size_bytes,
                  void*& pointer) override;
  Status free(void* pointer) override;
  Status make(device::MemoryKind kind, std::size_t size_bytes, void*& pointer);
  // The same for a buffer of the modelled program.
  Status allocate_for_program(device::MemoryKind kind, std::size_t size_bytes, void*& pointer);
  Status export_memory(const void* pointer, device::ExportedMemory& exported) override;
  Status open_memory(int device, const device::ExportedMemory& exported, void*& pointer) override;
  Status close_memory(void* pointer) override;
  int device_count() override { return 1; }
  int device_in_use() noexcept override {
    return options_.refused_percent != 0 && refuses() ? -1 : 0;
  }
  Status describe(int, device::DeviceDescription& description) override;

 private:
  friend class FakeInboxServer;
  struct Allocation {
    std::size_t size_bytes = 0;
    std::uint64_t buffer_id = 0;
    device::MemoryKind kind = device::MemoryKind::device;
    std::size_t source = 0;  // offset of the allocation that has the bytes: another's where opened
    std::uint64_t source_id = 0;  // its buffer id
    bool opened = false;          // another's
    bool for_kernels = true;
    bool of_program = false;
  };
  using Allocations = std::map<std::size_t, Allocation>;  // by offset

  FakeDevice();
  ~FakeDevice() override = default;
  static Status refused(const char* what) { return {StatusCode::unsupported, what}; }
  bool contains(const void* pointer) const noexcept;
  std::size_t offset_of(const void* pointer) const noexcept;
  Allocations::const_iterator find(const void* pointer) const;
  Status add(Allocation allocation, void*& pointer);
  std::size_t take_place(std::size_t size_bytes);
  void erase(Allocations::const_iterator allocation);
  bool is_there(const Allocation& allocation) const;
  // May be gone: users' memory that a trial reads, and nothing else. Its owner may free it at any
  // moment; a driver's free waits for kernels, and memory that a peer has open outlives it.
  enum class Presence { must_be, may_be_gone };
  std::byte* reachable(const void* pointer, std::size_t span_bytes,
                       Presence presence = Presence::must_be);
  bool kernels_reach(const void* pointer);
  bool is_pinned(const void* pointer) const;
  void move(const device::Copy& copy);
  void reduce(const device::Reduction& reduction, Presence presence, bool is_seen);
  Status begin(std::vector<std::function<void()>> steps, device::CopyTicket& ticket);
  Status next_copy_status();
  bool has_memory() { return refuse_after_.load() < 0 || refuse_after_.fetch_sub(1) != 0; }
  std::uint64_t random(std::uint64_t bound);
  bool refuses() { return random(100) < options_.refused_percent; }
  bool refuses_to_lend() { return random(100) < options_.lending_refused_percent; }
  void complain(const char* what);

  struct Pending;

  std::byte* const base_;  // what users hold: no access
  std::byte* const bytes_;
  ExchangeOptions options_;
  mutable HiddenMutex mutex_;
  Allocations allocations_;
  std::map<const std::byte*, std::unique_ptr<std::vector<std::byte>>> pinned_;  // by address
  std::map<std::size_t, std::vector<std::size_t>> freed_;                       // offsets, by size
  std::size_t next_offset_ = 0;
  std::uint64_t last_buffer_id_ = 0;
  std::atomic<Scheduler*> scheduler_{nullptr};
  std::atomic<long> fail_after_{-1};
  std::atomic<long> refuse_after_{-1};
  std::atomic<std::size_t> host_allocations_{0};
  std::map<void*, std::unique_ptr<Pending>> in_flight_;  // by ticket, never the same again
  std::uintptr_t last_ticket_ = 0;
  std::array<FakeInboxServer, 2> inbox_servers_{FakeInboxServer(*this), FakeInboxServer(*this)};
};

}  // namespace accord::model
