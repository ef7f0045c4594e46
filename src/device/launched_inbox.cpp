// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/launched_inbox.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "device/reduce_functions.h"
#include "device/reduce_on_host.h"

namespace accord::device::launched {
namespace {

constexpr std::uint32_t kManyGroups = 32;

// How often a work-item looks for data in one launch, each time for about a microsecond: of peers
// that are on their way, and of those that are in the same call. So another exchange on the same
// engine waits no longer than a tenth of a millisecond, and no watchdog of a GPU is met. Then the
// host looks after the peers. None of this has been measured on a GPU.
constexpr std::uint32_t kShortPolls = 32;
constexpr std::uint32_t kLongPolls = 128;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::uint32_t units_of(std::size_t size_bytes) {
  return static_cast<std::uint32_t>((size_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes);
}

std::size_t longest_block(const InboxExchange& exchange) {
  std::size_t bytes = exchange.block_bytes;
  for (const InboxPart& part : exchange.parts)
    bytes = std::max({bytes, part.send_bytes, part.receive_bytes});
  return bytes;
}

struct CombiningKernel {
  Element element;
  ReduceOp op;
  KernelName name;
};

constexpr CombiningKernel kCombiningKernels[] = {
#define ACCORD_KERNEL(element, type, op) \
  {Element::element, ReduceOp::op, {"accord_inbox_" #element "_" #op, #element}},
    ACCORD_REDUCTIONS(ACCORD_KERNEL)
#undef ACCORD_KERNEL
};

}  // namespace

KernelName receiving_kernel(const InboxExchange& exchange) {
  if (exchange.op == ReduceOp::none) return {"accord_inbox_receive", ""};
  const Element element = arithmetic_element(exchange.op, exchange.element);
  return std::find_if(std::begin(kCombiningKernels), std::end(kCombiningKernels),
                      [&](const CombiningKernel& next) {
                        return next.element == element && next.op == exchange.op;
                      })
      ->name;
}

std::uint32_t groups_of(const InboxCall& call) {
  return call.units * call.ranks <= kInboxGroupThreads ? 1 : kManyGroups;
}

void write_parameters(const InboxTicket& ticket, InboxParameters& parameters) {
  const InboxExchange& exchange = ticket.exchange;
  const std::uint64_t send_to = ticket.sent ? 0 : exchange.send_to;
  parameters.call = {
      .inbox = address_of(exchange.inbox),
      .src = address_of(exchange.src),
      .dst = address_of(exchange.dst),
      .send_to = send_to,
      .receive_from = exchange.receive_from,
      .lane_bytes = exchange.lane_bytes,
      .block_bytes = exchange.block_bytes,
      .send_stride_bytes = exchange.send_stride_bytes,
      .receive_stride_bytes = exchange.receive_stride_bytes,
      .epoch = exchange.epoch,
      .rank = static_cast<std::uint32_t>(exchange.rank),
      .turn = exchange.turn,
      .ranks = static_cast<std::uint32_t>(std::bit_width(send_to | exchange.receive_from)),
      .units = units_of(longest_block(exchange)),
      .polls = ticket.patience == InboxTicket::Patience::long_wait ? kLongPolls : kShortPolls,
      .in_parts = exchange.parts.empty() ? 0U : 1U,
      .unused = 0};
  for (std::size_t rank = 0; rank < exchange.parts.size(); ++rank) {
    const InboxPart& part = exchange.parts[rank];
    parameters.parts[rank] = {address_of(part.src), address_of(part.dst), part.send_bytes,
                              part.receive_bytes};
  }
  std::atomic_ref(parameters.late).store(0, std::memory_order_release);
}

// What one lane takes.
Status Server::open() {
  std::unique_ptr<Lane> lane;
  ACCORD_TRY(borrow(lane));
  give_back(std::move(lane));
  return Status();
}

Status Server::borrow(std::unique_ptr<Lane>& lane) {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    lane = make_lane_(lanes_made_++);
    return lane->open();
  }
  lane = std::move(idle_.back());
  idle_.pop_back();
  return Status();
}

void Server::give_back(std::unique_ptr<Lane> lane) {
  if (!lane->usable()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(lane));
}

Status Server::begin(InboxTicket& ticket) {
  ticket.state = InboxTicket::State::idle;
  Running running;
  ACCORD_TRY(borrow(running.lane));
  Status status = launch(ticket, running);
  if (!status.ok()) {
    give_back(std::move(running.lane));
    if (running.apart != nullptr) (void)runtime_.free(running.apart);
    return status;
  }
  const std::lock_guard lock(mutex_);
  ticket.number = ++last_number_;
  running_.emplace(ticket.number, std::move(running));
  ticket.state = InboxTicket::State::running;
  return Status();
}

Status Server::launch(const InboxTicket& ticket, Running& running) {
  Status status = running.lane->begin(ticket);
  const bool combines = ticket.exchange.op != ReduceOp::none;
  if (!combines || status.code() != StatusCode::unsupported) return status;
  log::debug("inboxes are combined by the CPU: {}", status.message());
  return launch_apart(ticket, running);
}

// Peers count on this rank to combine. Each block at its place, where the CPU finds it.
Status Server::launch_apart(const InboxTicket& ticket, Running& running) {
  InboxTicket all = ticket;
  InboxExchange& exchange = all.exchange;
  void* memory = nullptr;
  ACCORD_TRY(
      runtime_.allocate(index_, MemoryKind::pinned, kInboxRanksMax * exchange.block_bytes, memory));
  running.apart = static_cast<std::byte*>(memory);
  exchange.dst = memory;
  exchange.receive_stride_bytes = exchange.block_bytes;
  exchange.op = ReduceOp::none;
  return running.lane->begin(all);
}

Status Server::combine(const InboxExchange& exchange, const std::byte* apart) {
  std::vector<const void*> blocks;
  for (int rank = 0; rank < kInboxRanksMax; ++rank) {
    if ((exchange.receive_from & inbox_bit(rank)) != 0)
      blocks.push_back(apart + static_cast<std::size_t>(rank) * exchange.block_bytes);
  }
  if (blocks.empty() || exchange.block_bytes == 0) return Status();
  std::vector<std::byte> sum(exchange.block_bytes);
  reduce_on_host({.dst = sum.data(),
                  .sources = blocks,
                  .count = exchange.block_bytes / element_bytes(exchange.element),
                  .op = exchange.op,
                  .element = exchange.element});
  const Copy out{.dst = exchange.dst, .src = sum.data(), .row_bytes = sum.size()};
  return runtime_.copy(index_, {&out, 1});
}

// Whatever the answer, an exchange that has ended leaves its lane.
Status Server::ask(InboxTicket& ticket, bool& ended, bool& complete) {
  Running* running = nullptr;
  {
    const std::lock_guard lock(mutex_);
    running = &running_.at(ticket.number);
  }
  Status status = running->lane->poll(ended, complete);
  if (status.ok() && !ended) return status;
  if (status.ok() && complete && running->apart != nullptr)
    status = combine(ticket.exchange, running->apart);
  give_back(std::move(running->lane));
  if (running->apart != nullptr) keep_first(status, runtime_.free(running->apart));
  const std::lock_guard lock(mutex_);
  running_.erase(ticket.number);
  return status;
}

Status Server::poll(InboxTicket& ticket, bool& done) {
  done = ticket.state == InboxTicket::State::idle;
  if (ticket.state != InboxTicket::State::running) return Status();
  bool ended = false;
  Status status = ask(ticket, ended, done);
  if (!status.ok()) ticket.state = InboxTicket::State::idle;
  if (!status.ok() || !ended) return status;
  ticket.sent = true;
  ticket.state = done ? InboxTicket::State::idle : InboxTicket::State::late;
  return status;
}

void Server::stop(InboxTicket& ticket, bool& done) {
  bool complete = false;
  done = ticket.state != InboxTicket::State::running;
  if (!done && !ask(ticket, done, complete).ok()) done = true;
  if (done) ticket.state = InboxTicket::State::idle;
}

}  // namespace accord::device::launched
