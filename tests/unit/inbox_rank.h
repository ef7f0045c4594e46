// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A rank's end of inbox exchanges over any runtime, for tests: several of them in one process, on
// one device or several, share what a node's ranks share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "device/device_runtime.h"
#include "device/inbox_server.h"
#include "support.h"

namespace accord::test {

using device::InboxServer;
using device::InboxTicket;
using device::MemoryKind;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLaneBytes = std::size_t{1} << 20;
constexpr auto kExchangeTimeout = std::chrono::seconds(30);  // of what would never end

inline double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class InboxRank {
 public:
  // unsupported where no kernel can run, or another process has the device.
  Status open(device::DeviceRuntime& runtime, int device, int rank, int ranks) {
    runtime_ = &runtime;
    device_ = device;
    rank_ = rank;
    static std::uint32_t numbers = 0;
    number_ = ++numbers;
    ACCORD_TRY(runtime.inbox_server(device, server_));
    const std::size_t inbox_bytes = device::inbox_bytes(ranks, kLaneBytes);
    const std::size_t user_bytes = kLaneBytes * static_cast<std::size_t>(ranks);
    for (auto [pointer, size_bytes] :
         {std::pair{&inbox_, inbox_bytes}, {&src_, user_bytes}, {&dst_, user_bytes}}) {
      void* memory = nullptr;
      ACCORD_TRY(runtime.allocate(device, MemoryKind::device, size_bytes, memory));
      *pointer = static_cast<std::byte*>(memory);
    }
    const std::vector<std::byte> zeros(inbox_bytes);
    return copy(inbox_, zeros.data(), zeros.size());
  }

  // Tells each of all ranks of a node where the inboxes of the others are.
  static Status connect(std::span<InboxRank> all) {
    std::vector<std::byte*> inboxes;
    for (const InboxRank& one : all) inboxes.push_back(one.inbox_);
    for (const InboxRank& one : all)
      ACCORD_TRY(one.copy(one.inbox_, inboxes.data(), inboxes.size() * sizeof inboxes[0]));
    return {};
  }

  // Gives the memory back, with nothing under way.
  Status close() {
    for (std::byte** pointer : {&inbox_, &src_, &dst_})
      ACCORD_TRY(runtime_->free(std::exchange(*pointer, nullptr)));
    return {};
  }

  int device() const { return device_; }
  std::byte* src() const { return src_; }
  std::byte* dst() const { return dst_; }
  InboxServer& server() const { return *server_; }

  // Between its memory and the host's.
  Status copy(void* dst, const void* src, std::size_t size_bytes) const {
    const device::Copy one{dst, src, size_bytes};
    return runtime_->copy(device_, {&one, 1});
  }

  // The next call of this rank: blocks of this size from src to dst, as yet of nobody.
  InboxTicket ticket(std::size_t size_bytes) {
    InboxTicket made;
    made.exchange.inbox = inbox_;
    made.exchange.inbox_number = number_;
    made.exchange.lane_bytes = kLaneBytes;
    made.exchange.rank = rank_;
    made.exchange.epoch = ++epoch_;
    made.exchange.src = src_;
    made.exchange.dst = dst_;
    made.exchange.block_bytes = size_bytes;
    return made;
  }

  // Until done, or late for the first time.
  Status try_to_run(InboxTicket& ticket) {
    bool done = false;
    ACCORD_TRY(server_->begin(ticket));
    return poll_until(ticket, done, [&] { return ticket.state == InboxTicket::State::late; });
  }

  // Until done: it rings again whenever data was late, as a rank does that has nothing else to do.
  Status run(InboxTicket& ticket) {
    for (;;) {
      ACCORD_TRY(try_to_run(ticket));
      if (ticket.state != InboxTicket::State::late) return {};
      ticket.patience = InboxTicket::Patience::long_wait;
    }
  }

 private:
  template <class Stop>
  Status poll_until(InboxTicket& ticket, bool& done, Stop stop) {
    const auto start = Clock::now();
    while (!done && !stop()) {
      ACCORD_TRY(server_->poll(ticket, done));
      if (Clock::now() - start > kExchangeTimeout)
        return Status(StatusCode::device_error, "the exchange does not end");
      std::this_thread::yield();
    }
    return {};
  }

  device::DeviceRuntime* runtime_ = nullptr;
  InboxServer* server_ = nullptr;
  int device_ = 0;
  int rank_ = 0;
  std::uint32_t number_ = 0;
  std::byte* inbox_ = nullptr;
  std::byte* src_ = nullptr;
  std::byte* dst_ = nullptr;
  std::uint32_t epoch_ = 0;
};

}  // namespace accord::test
