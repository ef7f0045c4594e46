// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/quick_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "device/inbox.h"

namespace accord::node {
namespace {

// Groups count theirs from 1; this inbox stays where it is for good.
constexpr std::uint32_t kInboxNumber = UINT32_MAX;
constexpr int kRank = 0;
constexpr int kRanks = 1;

}  // namespace

QuickCopy::~QuickCopy() {
  if (inbox_ != nullptr) (void)runtime_->free(inbox_);
}

// An inbox starts with the addresses of all, and no word of it may look like one of some call.
Status QuickCopy::open(device::DeviceRuntime& runtime, int device) {
  runtime_ = &runtime;
  device::InboxServer* server = nullptr;
  ACCORD_TRY(runtime.inbox_server(device, server));
  if (!server->stays_on_device())
    return {StatusCode::unsupported, "a kernel begins no sooner than a copy there"};
  // One launch copies all that is fetched at once within a device, faster than one that waits for
  // its turn among other processes' (64 KiB, H100 under MPS: 24 GB/s instead of 16, both ways 21
  // instead of 3.6).
  if (server->kernel_place().server != 0)
    return {StatusCode::unsupported, "ranks share the device through a server"};
  const std::size_t size_bytes = device::inbox_bytes(kRanks, kBytesMax);
  ACCORD_TRY(runtime.allocate(device, device::MemoryKind::device, size_bytes, inbox_));
  std::vector<std::byte> content(size_bytes);
  std::memcpy(content.data(), &inbox_, sizeof inbox_);
  const device::Copy copy{.dst = inbox_, .src = content.data(), .row_bytes = size_bytes};
  ACCORD_TRY(runtime.copy(device, {&copy, 1}));
  server_ = server;
  return {};
}

// All of it, since a kernel that leaves an allocation takes the program's context with it.
bool QuickCopy::reaches(const void* start, std::size_t size_bytes) const noexcept {
  device::PointerInfo memory;
  if (!runtime_->classify(start, memory) || memory.kind != device::MemoryKind::device) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.base);
  return first + size_bytes <= base + memory.size_bytes && server_->reaches(memory);
}

Status QuickCopy::run(device::DeviceRuntime& runtime, int device, const device::Copy& copy,
                      bool& done) {
  done = false;
  const std::size_t most_bytes = std::min<std::size_t>(config().copy_kernel_bytes, kBytesMax);
  if (copy.rows != 1 || copy.row_bytes > most_bytes) return {};
  const std::lock_guard locked(mutex_);
  if (!is_opened_) {
    is_opened_ = true;
    const Status opened = open(runtime, device);
    if (!opened.ok()) log::info("short messages are fetched by copies: {}", opened.message());
  }
  if (server_ == nullptr || !reaches(copy.src, copy.row_bytes) ||
      !reaches(copy.dst, copy.row_bytes))
    return {};
  if (++epoch_ == 0) ++epoch_;
  device::InboxTicket ticket;
  ticket.exchange = {.inbox = static_cast<std::byte*>(inbox_),
                     .inbox_number = kInboxNumber,
                     .lane_bytes = kBytesMax,
                     .rank = kRank,
                     .epoch = epoch_,
                     .turn = epoch_ % 2,
                     .src = copy.src,
                     .dst = copy.dst,
                     .block_bytes = copy.row_bytes,
                     .send_to = device::inbox_bit(kRank),
                     .receive_from = device::inbox_bit(kRank)};
  const Status status = serve(ticket, done);
  // What is left of it is not known, and copies may go on where kernels do not.
  if (!status.ok()) server_ = nullptr;
  return status;
}

Status QuickCopy::serve(device::InboxTicket& ticket, bool& done) {
  using State = device::InboxTicket::State;
  ACCORD_TRY(server_->begin(ticket));
  while (!done) {
    // Another exchange has the kernel, which its owner alone ends: perhaps this very thread.
    if (ticket.state == State::waiting) return {};
    ACCORD_TRY(server_->poll(ticket, done));
    // What it sends itself never comes late, but the server's time for it may be over sooner.
    if (!done && ticket.state == State::late) ACCORD_TRY(server_->begin(ticket));
  }
  return {};
}

}  // namespace accord::node
