// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/direct_work.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "device/inbox_server.h"

namespace accord::device {
namespace {

std::size_t count_rows(std::span<const Copy> copies) noexcept {
  std::size_t count = 0;
  for (const Copy& copy : copies) count += copy.rows;
  return count;
}

std::size_t count_bytes(std::span<const Copy> copies) noexcept {
  std::size_t count = 0;
  for (const Copy& copy : copies) count += copy.rows * copy.row_bytes;
  return count;
}

// From the first byte of a copy's end to behind its last.
std::size_t span_bytes(const Copy& copy, std::size_t pitch_bytes) noexcept {
  return copy.row_bytes + (copy.rows - 1) * (copy.rows == 1 ? 0 : pitch_bytes);
}

std::vector<Copy> row_by_row(std::span<const Copy> copies) {
  std::vector<Copy> rows;
  rows.reserve(count_rows(copies));
  for (const Copy& copy : copies)
    for (std::size_t row = 0; row < copy.rows; ++row)
      rows.push_back({.dst = static_cast<std::byte*>(copy.dst) + row * copy.dst_pitch_bytes,
                      .src = static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes,
                      .row_bytes = copy.row_bytes});
  return rows;
}

bool is_within(const PointerInfo& memory, const void* start, std::size_t size_bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.base);
  return first >= base && first + size_bytes <= base + memory.size_bytes;
}

}  // namespace

std::size_t direct_copy_bytes() noexcept {
  return std::min<std::size_t>(config().copy_kernel_bytes, kDirectCopyBytesMax);
}

DirectWorker& DirectWorker::of(DeviceRuntime& runtime, int device) {
  struct Workers {
    std::mutex mutex;
    std::map<std::pair<const DeviceRuntime*, int>, std::unique_ptr<DirectWorker>> by_device;
  };
  // Never destroyed: MPI may be called from destructors of the program.
  static Workers& workers = *new Workers;
  const std::lock_guard locked(workers.mutex);
  std::unique_ptr<DirectWorker>& found = workers.by_device[{&runtime, device}];
  if (found == nullptr) found = std::make_unique<DirectWorker>(runtime, device);
  return *found;
}

// One for each life of the device's context: a program may reset its device.
InboxServer* DirectWorker::server() {
  const std::uint64_t life = runtime_.context_life(device_);
  const auto is_opened = [&] {
    return is_opened_.load(std::memory_order_acquire) &&
           life_.load(std::memory_order_acquire) == life;
  };
  if (is_opened()) return server_.load(std::memory_order_acquire);
  const std::lock_guard locked(opening_);
  if (is_opened()) return server_.load(std::memory_order_acquire);
  InboxServer* found = nullptr;
  const Status opened = runtime_.inbox_server(device_, found);
  if (!opened.ok()) log::info("short work goes by copies: {}", opened.message());
  if (!opened.ok() || !found->does_direct_work()) found = nullptr;
  if (found != nullptr) found->share_with(sharers_.load());
  server_.store(found, std::memory_order_release);
  life_.store(life, std::memory_order_release);
  is_opened_.store(true, std::memory_order_release);
  return found;
}

void DirectWorker::share_with(int processes) {
  int known = sharers_.load(std::memory_order_relaxed);
  while (known < processes && !sharers_.compare_exchange_weak(known, processes)) {
  }
  if (InboxServer* const found = server_.load(std::memory_order_acquire))
    found->share_with(processes);
}

// A kernel that lingers would keep those of others from running.
bool DirectWorker::is_wanted() {
  return config().copy_kernel_bytes != 0 && credit_.is_enough() &&
         !runtime_.expects_turns(device_) && server() != nullptr;
}

bool DirectWorker::reaches(const PointerInfo& memory, const void* start, std::size_t size_bytes) {
  if (memory.runtime != &runtime_ || !is_within(memory, start, size_bytes)) return false;
  if (memory.kind == MemoryKind::pinned) return true;
  InboxServer* const found = server();
  return memory.kind == MemoryKind::device && memory.device == device_ && found != nullptr &&
         found->reaches(memory);
}

Status DirectWorker::run(const DirectWork& work, bool& done) {
  done = false;
  // One at a time: what another thread would have to wait for goes another way sooner.
  const std::unique_lock locked(mutex_, std::try_to_lock);
  InboxServer* const found = locked.owns_lock() ? server() : nullptr;
  if (found == nullptr) return {};
  std::vector<Copy> rows;
  DirectWork told = work;
  if (std::ranges::any_of(work.copies, [](const Copy& copy) { return copy.rows != 1; }))
    told.copies = rows = row_by_row(work.copies);
  InboxTicket ticket;
  ticket.direct = &told;
  const Status status = serve(*found, ticket, done);
  // What is left of it is not known, and copies may go on where kernels do not.
  if (!status.ok()) server_.store(nullptr, std::memory_order_release);
  return status;
}

Status DirectWorker::serve(InboxServer& server, InboxTicket& ticket, bool& done) {
  ACCORD_TRY(server.begin(ticket));
  while (!done) {
    // Another worker of the context has the kernel, which its owner alone ends.
    if (ticket.state == InboxTicket::State::waiting) return {};
    ACCORD_TRY(server.poll(ticket, done));
  }
  return {};
}

// Of a window of messages, most lie in the same two allocations.
bool DirectWorker::reaches_all(const InboxServer& server, std::span<const Copy> copies,
                               bool& leaves_device) {
  std::vector<PointerInfo> known;
  const auto find = [&](const void* start, std::size_t size_bytes) -> const PointerInfo* {
    const auto covers = [&](const PointerInfo& one) { return is_within(one, start, size_bytes); };
    const auto at = std::ranges::find_if(known, covers);
    if (at != known.end()) return &*at;
    PointerInfo memory;
    if (!runtime_.classify(start, memory) || !covers(memory)) return nullptr;
    const bool is_reached = memory.kind == MemoryKind::pinned ||
                            (memory.kind == MemoryKind::device && server.reaches(memory));
    return is_reached ? &known.emplace_back(memory) : nullptr;
  };
  leaves_device = false;
  return std::ranges::all_of(copies, [&](const Copy& copy) {
    const PointerInfo* const to = find(copy.dst, span_bytes(copy, copy.dst_pitch_bytes));
    if (to == nullptr) return false;
    leaves_device = leaves_device || to->kind == MemoryKind::pinned;
    return find(copy.src, span_bytes(copy, copy.src_pitch_bytes)) != nullptr;
  });
}

Status DirectWorker::copy(std::span<const Copy> copies, bool& done) {
  done = false;
  DirectWork work{.copies = copies};
  if (count_bytes(copies) > direct_copy_bytes() || count_rows(copies) > kDirectCopiesMax) return {};
  const InboxServer* const found = server();
  if (found == nullptr || !reaches_all(*found, copies, work.leaves_device)) return {};
  return run(work, done);
}

bool stage_quickly(DeviceRuntime& runtime, int device, const CopyBatch& batch) {
  constexpr std::size_t kBytesMax = 2048;  // a block moves so much at once
  const std::vector<Copy>& copies = batch.plain.copies();
  if (!batch.laid_out.empty() || count_bytes(copies) > kBytesMax) return false;
  DirectWorker& worker = DirectWorker::of(runtime, device);
  bool done = false;
  return worker.is_wanted() && worker.copy(copies, done).ok() && done;
}

}  // namespace accord::device
