// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/direct_work.h"

#include <map>
#include <memory>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "device/inbox_server.h"

namespace accord::device {

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

InboxServer* DirectWorker::server() {
  std::call_once(is_opened_, [this] {
    InboxServer* server = nullptr;
    const Status opened = runtime_.inbox_server(device_, server);
    if (!opened.ok()) log::info("short one-sided operations go by copies: {}", opened.message());
    if (!opened.ok() || !server->does_direct_work()) return;
    server->share_with(sharers_.load());
    server_.store(server, std::memory_order_release);
  });
  return server_.load(std::memory_order_acquire);
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
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.base);
  if (memory.runtime != &runtime_ || first < base || first + size_bytes > base + memory.size_bytes)
    return false;
  if (memory.kind == MemoryKind::pinned) return true;
  InboxServer* const found = server();
  return memory.kind == MemoryKind::device && memory.device == device_ && found != nullptr &&
         found->reaches(memory);
}

Status DirectWorker::run(const DirectWork& work, bool& done) {
  done = false;
  // One at a time: what another thread would have to wait for goes another way sooner.
  const std::unique_lock locked(mutex_, std::try_to_lock);
  if (!locked.owns_lock() || server() == nullptr) return {};
  InboxTicket ticket;
  ticket.direct = &work;
  const Status status = serve(ticket, done);
  // What is left of it is not known, and copies may go on where kernels do not.
  if (!status.ok()) server_.store(nullptr, std::memory_order_release);
  return status;
}

Status DirectWorker::serve(InboxTicket& ticket, bool& done) {
  InboxServer& server = *server_.load(std::memory_order_acquire);
  ACCORD_TRY(server.begin(ticket));
  while (!done) {
    // Another worker of the context has the kernel, which its owner alone ends.
    if (ticket.state == InboxTicket::State::waiting) return {};
    ACCORD_TRY(server.poll(ticket, done));
  }
  return {};
}

}  // namespace accord::device
