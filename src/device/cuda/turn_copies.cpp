// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/turn_copies.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "device/cuda/copy_list.h"

namespace accord::device::cuda {
namespace {

// From there on the driver leaves a copy from the host to an engine by itself.
constexpr std::size_t kRowsBytesMax = std::size_t{32} << 10;

// What a turn takes, each of two copies by way of the host, and what goes both ways in a
// microsecond while others copy, too (one H100).
constexpr std::size_t kTurnUs = 150;
constexpr std::size_t kCopyUs = 4;
constexpr std::size_t kBytesPerUs = 20'000;
// Of what is page-locked beforehand, since the driver may let that wait for kernels.
constexpr std::size_t kBounceBytesMin = std::size_t{4} << 10;
constexpr std::size_t kBounceBytesMax = std::size_t{1} << 20;
constexpr std::size_t kBounces = 4;
// Longer lists are one kernel's work.
constexpr std::size_t kCopiesMax = 64;

std::size_t size_of(const Copy& copy) { return copy.rows * copy.row_bytes; }

bool is_run(const Copy& copy) {
  return copy.rows == 1 ||
         (copy.dst_pitch_bytes == copy.row_bytes && copy.src_pitch_bytes == copy.row_bytes);
}

enum class Where { host, here, on_another };

Where place_of(const Driver& driver, Device device, const void* pointer) {
  auto type = MemoryType::none;
  int ordinal = -1;
  const auto ask = [&](PointerAttribute attribute, auto& value) {
    return driver.pointer_get_attribute(&value, attribute, address_of(pointer)) == Result::success;
  };
  if (!ask(PointerAttribute::memory_type, type) || type != MemoryType::device) return Where::host;
  const bool is_here = ask(PointerAttribute::device_ordinal, ordinal) && ordinal == device;
  return is_here ? Where::here : Where::on_another;
}

Result enqueue_two_rows(const Driver& driver, const void* src, void* dst, std::size_t row_bytes,
                        Stream stream) {
  Copy2d rows{};
  rows.src_type = MemoryType::unified;
  rows.src_device = address_of(src);
  rows.src_pitch_bytes = row_bytes;
  rows.dst_type = MemoryType::unified;
  rows.dst_device = address_of(dst);
  rows.dst_pitch_bytes = row_bytes;
  rows.width_bytes = row_bytes;
  rows.height = 2;
  return driver.copy_2d_async(&rows, stream);
}

// An odd number of bytes goes as two rectangles that overlap.
Result enqueue_short(const Driver& driver, const Copy& copy, Stream stream) {
  const std::size_t row_bytes = size_of(copy) / 2;
  Result result = enqueue_two_rows(driver, copy.src, copy.dst, row_bytes, stream);
  if (result == Result::success && size_of(copy) % 2 != 0)
    result = enqueue_two_rows(driver, static_cast<const std::byte*>(copy.src) + 1,
                              static_cast<std::byte*>(copy.dst) + 1, row_bytes, stream);
  return result;
}

struct Step {
  Copy copy;
  bool from_host = false;  // to the device
};

Status enqueue(const Driver& driver, std::span<const Step> steps, Stream stream) {
  for (const auto& [copy, from_host] : steps) {
    const std::size_t size_bytes = size_of(copy);
    if (from_host && is_run(copy) && size_bytes > 1 && size_bytes < kRowsBytesMax) {
      ACCORD_TRY(status_of(driver, enqueue_short(driver, copy, stream), symbol::copy_2d_async));
    } else {
      ACCORD_TRY(enqueue_copies(driver, {&copy, 1}, stream));
    }
  }
  return Status();
}

// What the copies come to: those within the device by way of a bounce, `bounce_bytes` long. False
// where a turn is sooner.
bool plan(const Driver& driver, Device device, std::span<const Copy> copies,
          std::vector<Step>& steps, std::size_t& bounce_bytes) {
  if (copies.size() > kCopiesMax) return false;
  std::size_t within = 0;
  for (const Copy& copy : copies) {
    if (size_of(copy) == 0) continue;
    const bool is_to_here = place_of(driver, device, copy.dst) == Where::here;
    const Where source = is_to_here ? place_of(driver, device, copy.src) : Where::host;
    steps.push_back({copy, is_to_here && source == Where::host});
    if (!is_to_here || source != Where::here) continue;
    // Where in the bounce it goes is told once there is one.
    Copy second = copy;
    steps.back().copy.dst = nullptr;
    steps.back().copy.dst_pitch_bytes = copy.row_bytes;
    second.src = nullptr;
    second.src_pitch_bytes = copy.row_bytes;
    steps.push_back({second, true});
    bounce_bytes += size_of(copy);
    if (bounce_bytes > kBounceBytesMax ||
        2 * kCopyUs * ++within + bounce_bytes / kBytesPerUs > kTurnUs)
      return false;
  }
  return true;
}

void place(std::vector<Step>& steps, std::byte* bounce) {
  for (auto& [copy, from_host] : steps) {
    if (copy.dst == nullptr) copy.dst = bounce;
    if (copy.src != nullptr) continue;
    copy.src = bounce;
    bounce += size_of(copy);
  }
}

}  // namespace

void TurnCopies::expect(const Driver& driver, Device device) noexcept {
  const auto index = static_cast<std::size_t>(device);
  if (index >= expected_.size() || expected_[index].exchange(true)) return;
  std::array<void*, kBounces> bounces{};
  for (void*& bounce : bounces) (void)host_memory_.allocate(&driver, kBounceBytesMax, bounce);
  for (void* const bounce : bounces)
    if (bounce != nullptr) host_memory_.free(&driver, bounce, kBounceBytesMax);
  // Of these, what could be page-locked.
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < bounces.size(); ++i)
    if (void* const bounce = host_memory_.take(kBounceBytesMax)) own_.push_back(bounce);
}

TurnCopies::Bounce TurnCopies::take(std::size_t size_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!own_.empty()) {
      void* const memory = own_.back();
      own_.pop_back();
      return {memory, kBounceBytesMax, true};
    }
  }
  size_bytes = std::bit_ceil(std::max(size_bytes, kBounceBytesMin));
  return {host_memory_.take(size_bytes), size_bytes, false};
}

bool TurnCopies::are_taken(Device device) const noexcept {
  const auto index = static_cast<std::size_t>(device);
  return index < expected_.size() && expected_[index].load(std::memory_order_relaxed);
}

Status TurnCopies::copy(const Driver& driver, Device device, std::span<const Copy> copies) {
  if (!are_taken(device)) return copy_list(driver, device, copies);
  CopyTicket ticket;
  ACCORD_TRY(begin(driver, device, copies, ticket));
  for (bool is_done = false; !is_done;) ACCORD_TRY(done(driver, ticket, is_done));
  return Status();
}

Status TurnCopies::begin(const Driver& driver, Device device, std::span<const Copy> copies,
                         CopyTicket& ticket) {
  bool begun = false;
  ACCORD_TRY(begin_in_turns(driver, device, copies, ticket, begun));
  return begun ? Status() : copy_list_begin(driver, device, copies, ticket);
}

Status TurnCopies::begin_beside_kernels(const Driver& driver, Device device,
                                        std::span<const Copy> copies, CopyTicket& ticket) {
  bool begun = false;
  ACCORD_TRY(begin_in_turns(driver, device, copies, ticket, begun));
  return begun ? Status() : copy_begin(driver, device, copies, ticket);
}

// By engines, where turns are taken. `begun` says no where they are not, kernels are sooner, or
// there is no bounce: nothing has been copied.
Status TurnCopies::begin_in_turns(const Driver& driver, Device device, std::span<const Copy> copies,
                                  CopyTicket& ticket, bool& begun) {
  begun = false;
  if (!are_taken(device)) return Status();
  std::vector<Step> steps;
  std::size_t bounce_bytes = 0;
  Bounce bounce;
  if (!plan(driver, device, copies, steps, bounce_bytes)) return Status();
  if (bounce_bytes != 0) {
    bounce = take(bounce_bytes);
    if (bounce.memory == nullptr) return Status();
    place(steps, static_cast<std::byte*>(bounce.memory));
  }
  begun = true;
  const Status status = begin_copies(
      driver, device, copies, [&](Stream stream) { return enqueue(driver, steps, stream); },
      ticket);
  if (bounce.memory == nullptr) return status;
  if (ticket.handle == nullptr) {
    free(driver, bounce);
    return status;
  }
  pending_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  bounces_.emplace(ticket.handle, bounce);
  return status;
}

// Its bounce is looked up before the handle may become another ticket's.
Status TurnCopies::done(const Driver& driver, CopyTicket& ticket, bool& done) {
  if (pending_.load(std::memory_order_relaxed) == 0) return copy_done(driver, ticket, done);
  std::unique_lock lock(mutex_);
  auto bounce = bounces_.extract(ticket.handle);
  lock.unlock();
  const Status status = copy_done(driver, ticket, done);
  if (bounce.empty()) return status;
  if (!done) {
    lock.lock();
    bounces_.insert(std::move(bounce));
    return status;
  }
  pending_.fetch_sub(1, std::memory_order_relaxed);
  free(driver, bounce.mapped());
  return status;
}

void TurnCopies::free(const Driver& driver, const Bounce& bounce) noexcept {
  if (!bounce.is_own) return host_memory_.free(&driver, bounce.memory, bounce.size_bytes);
  const std::lock_guard lock(mutex_);
  own_.push_back(bounce.memory);
}

}  // namespace accord::device::cuda
