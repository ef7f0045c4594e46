// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace accord::model {
namespace {

constexpr std::size_t kArenaBytes = std::size_t{8} << 20;
constexpr std::uint64_t kPollsMax = 6;

}  // namespace

// A batch on its way.
struct FakeDevice::Pending {
  std::vector<device::Copy> copies;
  std::uint64_t polls_left = 0;
  bool moved = false;
};

FakeDevice::FakeDevice() : bytes_(std::make_unique<std::byte[]>(kArenaBytes)) {
  void* base =
      mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(base);
}

FakeDevice& FakeDevice::get(std::size_t index) {
  static std::array<FakeDevice*, kCount> devices{new FakeDevice, new FakeDevice};
  return *devices[index];
}

FakeDevice* FakeDevice::owner(const void* pointer) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (get(i).contains(pointer)) return &get(i);
  }
  return nullptr;
}

device::PointerInfo FakeDevice::classify_any(const void* pointer) {
  device::PointerInfo info;
  if (FakeDevice* device = owner(pointer)) (void)device->classify(pointer, info);
  return info;
}

void FakeDevice::attach(Scheduler* scheduler) {
  scheduler_.store(scheduler);
  fail_after_.store(-1);
  const std::lock_guard<std::mutex> locked(mutex_);
  in_flight_.clear();
}

bool FakeDevice::contains(const void* pointer) const noexcept {
  const auto* address = static_cast<const std::byte*>(pointer);
  return address >= base_ && address < base_ + kArenaBytes;
}

std::byte* FakeDevice::behind(const void* pointer) const {
  return bytes_.get() + (static_cast<const std::byte*>(pointer) - base_);
}

std::uint64_t FakeDevice::random(std::uint64_t bound) {
  Scheduler* scheduler = scheduler_.load();
  return scheduler != nullptr ? scheduler->random(bound) : 0;
}

void FakeDevice::complain(const char* what) {
  if (Scheduler* scheduler = scheduler_.load()) {
    scheduler->fail(what);
  } else {
    std::abort();
  }
}

bool FakeDevice::classify(const void* pointer, device::PointerInfo& info) noexcept {
  if (!contains(pointer)) return false;
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
  auto found = allocations_.upper_bound(offset);
  if (found == allocations_.begin()) return false;
  --found;
  if (offset >= found->first + found->second.size_bytes) return false;
  info = {found->second.kind, this, 0, base_ + found->first, found->second.size_bytes, 0};
  return true;
}

// The CPU's address for `pointer`; complains about device memory outside of any allocation.
void* FakeDevice::reachable(const void* pointer, std::size_t span_bytes) {
  if (!contains(pointer)) {
    if (owner(pointer) != nullptr) complain("a copy was given to the wrong device runtime");
    return const_cast<void*>(pointer);
  }
  device::PointerInfo info;
  if (!classify(pointer, info) || static_cast<const std::byte*>(pointer) + span_bytes >
                                      static_cast<const std::byte*>(info.base) + info.size_bytes) {
    complain("a copy touches device memory outside of the allocation");
  }
  return behind(pointer);
}

void FakeDevice::move(const device::Copy& copy) {
  auto* dst = static_cast<std::byte*>(
      reachable(copy.dst, (copy.rows - 1) * copy.dst_pitch_bytes + copy.row_bytes));
  const auto* src = static_cast<const std::byte*>(
      reachable(copy.src, (copy.rows - 1) * copy.src_pitch_bytes + copy.row_bytes));
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::memcpy(dst + row * copy.dst_pitch_bytes, src + row * copy.src_pitch_bytes, copy.row_bytes);
  }
}

Status FakeDevice::next_copy_status() {
  if (fail_after_.load() < 0 || fail_after_.fetch_sub(1) != 0) return {};
  return {StatusCode::device_error, "injected"};
}

Status FakeDevice::copy(int, std::span<const device::Copy> copies) {
  if (Scheduler* scheduler = scheduler_.load()) scheduler->yield();
  ACCORD_TRY(next_copy_status());
  for (const device::Copy& one : copies) move(one);
  return {};
}

Status FakeDevice::copy_begin(int, std::span<const device::Copy> copies,
                              device::CopyTicket& ticket) {
  ACCORD_TRY(next_copy_status());
  ticket.handle = nullptr;
  auto pending = std::make_unique<Pending>();
  pending->copies.assign(copies.begin(), copies.end());
  pending->polls_left = random(kPollsMax + 1);
  pending->moved = random(2) == 0;
  if (pending->moved) {
    for (const device::Copy& one : pending->copies) move(one);
    if (pending->polls_left == 0) return {};  // complete already
  }
  ticket.handle = pending.get();
  const std::lock_guard<std::mutex> locked(mutex_);
  in_flight_[ticket.handle] = std::move(pending);
  return {};
}

// Writes `done` only when it is: what the interface promises, and no more.
Status FakeDevice::copy_done(device::CopyTicket& ticket, bool& done) {
  auto* pending = static_cast<Pending*>(ticket.handle);
  if (pending == nullptr) {
    done = true;
    return {};
  }
  if (pending->polls_left > 0) {
    --pending->polls_left;
    return {};
  }
  if (!pending->moved) {
    for (const device::Copy& one : pending->copies) move(one);
  }
  {
    const std::lock_guard<std::mutex> locked(mutex_);
    in_flight_.erase(ticket.handle);
  }
  ticket.handle = nullptr;
  if (Scheduler* scheduler = scheduler_.load()) scheduler->event();
  done = true;
  return {};
}

Status FakeDevice::host_allocate(std::size_t size_bytes, void*& pointer) {
  pointer = std::malloc(size_bytes);
  if (pointer == nullptr) return {StatusCode::no_memory, "host memory"};
  std::memset(pointer, 0x5a, size_bytes);
  host_allocations_.fetch_add(1);
  return {};
}

void FakeDevice::host_free(void* pointer, std::size_t) noexcept {
  std::free(pointer);
  host_allocations_.fetch_sub(1);
}

Status FakeDevice::allocate(int, device::MemoryKind kind, std::size_t size_bytes, void*& pointer) {
  constexpr std::size_t kAlignmentBytes = 64;
  const std::lock_guard<std::mutex> locked(mutex_);
  if (allocations_.empty()) next_offset_ = 0;
  if (next_offset_ + size_bytes > kArenaBytes)
    return {StatusCode::no_memory, "the fake device is full"};
  allocations_[next_offset_] = {size_bytes, kind};
  pointer = base_ + next_offset_;
  next_offset_ += (size_bytes / kAlignmentBytes + 1) * kAlignmentBytes;
  return {};
}

Status FakeDevice::free(void* pointer) {
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - base_);
  if (allocations_.erase(offset) == 0) return {StatusCode::invalid_argument, "not an allocation"};
  return {};
}

std::size_t FakeDevice::copies_in_flight() const {
  const std::lock_guard<std::mutex> locked(mutex_);
  return in_flight_.size();
}

std::size_t FakeDevice::live_allocations() const {
  const std::lock_guard<std::mutex> locked(mutex_);
  return allocations_.size();
}

}  // namespace accord::model
