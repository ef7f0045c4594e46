// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_inbox.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "device/host/inbox.h"
#include "fake_device.h"

namespace accord::model {
namespace {

using device::InboxExchange;
using device::InboxTicket;

constexpr std::uint64_t kShortLooks = 4;
constexpr std::uint64_t kLongLooks = 24;

std::size_t span_bytes(std::uint64_t ranks, std::size_t stride_bytes, std::size_t block_bytes) {
  if (ranks == 0) return 0;
  return static_cast<std::size_t>(std::bit_width(ranks) - 1) * stride_bytes + block_bytes;
}

// Every rank that takes part has bytes, none more than a lane has room for.
bool lengths_fit(const InboxExchange& exchange) {
  for (int rank = 0; rank < device::kInboxRanksMax; ++rank) {
    for (const auto& [ranks, size_bytes] :
         {std::pair{exchange.send_to, &InboxExchange::send_bytes},
          {exchange.receive_from, &InboxExchange::receive_bytes}}) {
      if ((ranks & device::inbox_bit(rank)) == 0) continue;
      const std::size_t bytes = (exchange.*size_bytes)(rank);
      if (bytes == 0 || bytes > exchange.lane_bytes) return false;
    }
  }
  return exchange.parts.empty() || (exchange.send_to | exchange.receive_from) != 0;
}

}  // namespace

void FakeInboxServer::reset() {
  const HiddenLock locked(mutex_);
  current_ = nullptr;
  waiting_.clear();
}

bool FakeInboxServer::idle() const {
  const HiddenLock locked(mutex_);
  return current_ == nullptr && waiting_.empty();
}

void FakeInboxServer::yield() {
  if (Scheduler* scheduler = device_.scheduler_.load()) scheduler->yield();
}

void FakeInboxServer::event() {
  if (Scheduler* scheduler = device_.scheduler_.load()) scheduler->event();
}

device::KernelPlace FakeInboxServer::kernel_place() const {
  const bool is_exclusive = device_.random(100) < device_.options_.exclusive_percent;
  return {.device = is_exclusive ? std::uint64_t{1} : 0};
}

device::PacketReach FakeInboxServer::packet_reach() const {
  return {.own = device_.options_.packets && device::cpu_keeps_packets_whole() ? 1U : 0U};
}

Status FakeInboxServer::begin(InboxTicket& ticket) {
  yield();
  if (ticket.state != InboxTicket::State::idle && ticket.state != InboxTicket::State::late)
    device_.complain("an inbox exchange that is under way was begun again");
  ticket.state = InboxTicket::State::idle;
  ACCORD_TRY(device_.next_copy_status());
  ticket.state = InboxTicket::State::waiting;
  post(ticket);
  return {};
}

void FakeInboxServer::post(InboxTicket& ticket) {
  const HiddenLock locked(mutex_);
  if (std::ranges::find(waiting_, &ticket) == waiting_.end()) waiting_.push_back(&ticket);
  if (current_ != nullptr || waiting_.front() != &ticket || device_.random(4) == 0) return;
  waiting_.pop_front();
  current_ = &ticket;
  ticket.state = InboxTicket::State::running;
  unsent_ = ticket.sent ? 0 : ticket.exchange.send_to;
  looks_left_ = device_.random(ticket.patience == InboxTicket::Patience::long_wait ? kLongLooks
                                                                                   : kShortLooks);
}

Status FakeInboxServer::poll(InboxTicket& ticket, bool& done) {
  done = ticket.state == InboxTicket::State::idle;
  if (done) return {};
  if (ticket.state == InboxTicket::State::late)
    device_.complain("an inbox exchange that is late was polled before it was begun again");
  if (ticket.state == InboxTicket::State::waiting) {
    post(ticket);
    return {};
  }
  const HiddenLock locked(mutex_);
  if (device_.random(3) != 0) work(ticket, done);
  return {};
}

// What a kernel does between two polls.
void FakeInboxServer::work(InboxTicket& ticket, bool& done) {
  Inboxes inboxes{};
  const InboxExchange exchange = reachable(ticket.exchange, inboxes);
  if (unsent_ != 0) return send_some(exchange, inboxes);
  if (device_.random(2) == 0) return receive_some(exchange);
  if (device_.random(2) == 0) {
    const Seen seen;
    done = device::inbox_receive(exchange);
  }
  if (!done && looks_left_-- > 0) return;
  ticket.sent = true;
  ticket.state = done ? InboxTicket::State::idle : InboxTicket::State::late;
  current_ = nullptr;
  if (done) event();
}

// Bytes of the first units of a block, but not all.
std::size_t FakeInboxServer::part_of(std::size_t size_bytes) {
  const std::size_t units = (size_bytes - 1) / device::kInboxUnitBytes;
  return device_.random(units + 1) * device::kInboxUnitBytes;
}

void FakeInboxServer::send_some(const InboxExchange& exchange, const Inboxes& inboxes) {
  InboxExchange some = exchange;
  std::uint64_t skipped = device_.random(static_cast<std::uint64_t>(std::popcount(unsent_)));
  std::uint64_t receivers = unsent_;
  for (; skipped > 0; --skipped) receivers &= receivers - 1;
  some.send_to = receivers & ~(receivers - 1);
  // Where packets lie depends on the length of the whole block.
  if (device_.random(3) == 0 && !exchange.in_packets) {
    if (!some.parts.empty()) return send_part(some, inboxes);
    some.block_bytes = part_of(exchange.block_bytes);
  } else {
    unsent_ &= ~some.send_to;
  }
  {
    const Seen seen;
    device::inbox_send(some, inboxes);
  }
  event();
}

// The first units for one rank.
void FakeInboxServer::send_part(InboxExchange some, const Inboxes& inboxes) {
  std::vector<device::InboxPart> parts(some.parts.begin(), some.parts.end());
  std::size_t& size_bytes =
      parts[static_cast<std::size_t>(std::countr_zero(some.send_to))].send_bytes;
  size_bytes = part_of(size_bytes);
  some.parts = parts;
  {
    const Seen seen;
    device::inbox_send(some, inboxes);
  }
  event();
}

void FakeInboxServer::receive_some(const InboxExchange& exchange) {
  if (exchange.in_packets) return;
  InboxExchange some = exchange;
  std::vector<device::InboxPart> parts(some.parts.begin(), some.parts.end());
  for (device::InboxPart& part : parts) {
    if (part.receive_bytes != 0) part.receive_bytes = part_of(part.receive_bytes);
  }
  some.parts = parts;
  if (parts.empty()) some.block_bytes = part_of(exchange.block_bytes);
  if (exchange.op == device::ReduceOp::none) some.receive_from &= device_.random(256);
  const Seen seen;
  (void)device::inbox_receive(some);
}

// With the addresses that the CPU knows, each good for as far as the kernel may go.
InboxExchange FakeInboxServer::reachable(const InboxExchange& exchange, Inboxes& inboxes) {
  if (exchange.inbox_number == 0 || exchange.epoch == 0 || !lengths_fit(exchange))
    device_.complain("an inbox exchange that cannot be");
  const auto inbox = [&](std::byte* of, int last_rank) {
    return device_.reachable(of, device::inbox_bytes(last_rank + 1, exchange.lane_bytes));
  };
  InboxExchange reached = exchange;
  reached.inbox =
      inbox(exchange.inbox, static_cast<int>(std::bit_width(exchange.receive_from)) - 1);
  for (std::size_t peer = 0; peer < inboxes.size(); ++peer) {
    if ((exchange.send_to & device::inbox_bit(static_cast<int>(peer))) == 0) continue;
    std::byte* theirs = nullptr;
    std::memcpy(&theirs, reached.inbox + peer * sizeof theirs, sizeof theirs);
    inboxes[peer] = inbox(theirs, exchange.rank);
  }
  const auto user = [&](const void* pointer, std::size_t size_bytes) {
    if (size_bytes == 0) return static_cast<std::byte*>(nullptr);
    if (!device_.contains(pointer) && !device_.is_pinned(pointer))
      device_.complain("a kernel was given memory of the CPU");
    return device_.reachable(pointer, size_bytes);
  };
  const auto check_dst = [&](const void* dst) {
    if (exchange.dst_on_host != device_.is_pinned(dst))
      device_.complain("a kernel was told wrongly whether it writes to host memory");
  };
  parts_.assign(exchange.parts.begin(), exchange.parts.end());
  for (device::InboxPart& part : parts_) {
    if (part.receive_bytes != 0) check_dst(part.dst);
    part.src = user(part.src, part.send_bytes);
    part.dst = user(part.dst, part.receive_bytes);
  }
  reached.parts = parts_;
  if (!parts_.empty()) return reached;
  if (exchange.receive_from != 0) check_dst(exchange.dst);
  reached.src = user(
      exchange.src, span_bytes(exchange.send_to, exchange.send_stride_bytes, exchange.block_bytes));
  reached.dst = user(exchange.dst, span_bytes(exchange.receive_from, exchange.receive_stride_bytes,
                                              exchange.block_bytes));
  return reached;
}

void FakeInboxServer::stop(InboxTicket& ticket, bool& done) {
  const HiddenLock locked(mutex_);
  done = true;
  std::erase(waiting_, &ticket);
  if (current_ == &ticket && device_.random(2) == 0) {
    bool complete = false;
    work(ticket, complete);
    done = current_ != &ticket;
  } else if (current_ == &ticket) {
    current_ = nullptr;
  }
  if (done) ticket.state = InboxTicket::State::idle;
}

}  // namespace accord::model
