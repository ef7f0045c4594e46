// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero_inbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "device/host_reduce.h"
#include "device/level_zero_inbox_lane.h"
#include "device/level_zero_modules.h"
#include "device/reduce_functions.h"

namespace accord::device::level_zero {
namespace {

struct Name {
  Element element;
  ReduceOp op;
  const char* module;
  const char* kernel;
};

constexpr Name kNames[] = {
#define ACCORD_KERNEL(element, type, op) \
  {Element::element, ReduceOp::op, "inbox_" #element, "accord_inbox_" #element "_" #op},
    ACCORD_REDUCTIONS(ACCORD_KERNEL)
#undef ACCORD_KERNEL
};

const Name& name_of(const InboxExchange& exchange) {
  const Element element = arithmetic_element(exchange.op, exchange.element);
  return *std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& next) {
    return next.element == element && next.op == exchange.op;
  });
}

// An exchange on its way.
struct Running {
  std::unique_ptr<InboxLane> lane;
  // Where the device does not run the kernel that would combine what comes: it is received here,
  // and combined by the CPU.
  std::byte* apart = nullptr;
};

class LevelZeroInboxServer final : public InboxServer {
 public:
  LevelZeroInboxServer(const Driver& driver, DeviceRuntime& runtime, int index,
                       const Device& device)
      : driver_(driver), runtime_(runtime), index_(index), device_(device) {}

  // What one lane takes.
  Status open() {
    ACCORD_TRY(find_kernel(driver_, device_, "inbox", "accord_inbox_send", send_));
    ACCORD_TRY(find_kernel(driver_, device_, "inbox", "accord_inbox_receive", receive_));
    std::unique_ptr<InboxLane> lane;
    ACCORD_TRY(borrow(lane));
    give_back(std::move(lane));
    return Status();
  }

  // No kernel keeps others from running for longer than it looks for its data.
  std::uint64_t exclusive_device() const override { return 0; }
  bool stays_on_device() const override { return false; }
  bool reaches(const PointerInfo& memory) const override {
    return memory.context == nullptr || memory.context == device_.context;
  }

  Status begin(InboxTicket& ticket) override;
  Status poll(InboxTicket& ticket, bool& done) override;
  void stop(InboxTicket& ticket, bool& done) override;

 private:
  static constexpr std::size_t kIdleMax = 32;

  Status borrow(std::unique_ptr<InboxLane>& lane);
  void give_back(std::unique_ptr<InboxLane> lane);
  Status launch(const InboxTicket& ticket, Running& running);
  Status launch_apart(const InboxTicket& ticket, Running& running);
  Status combine(const InboxExchange& exchange, const std::byte* apart);
  Status ask(InboxTicket& ticket, bool& ended, bool& complete);

  const Driver& driver_;
  DeviceRuntime& runtime_;
  const int index_;
  const Device& device_;
  Kernel* send_ = nullptr;
  Kernel* receive_ = nullptr;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<InboxLane>> idle_;
  std::uint32_t lanes_made_ = 0;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Running> running_;  // by the number of the ticket; they stay in place
};

Status LevelZeroInboxServer::borrow(std::unique_ptr<InboxLane>& lane) {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    lane = std::make_unique<InboxLane>(driver_, device_, lanes_made_++);
    return lane->open();
  }
  lane = std::move(idle_.back());
  idle_.pop_back();
  return Status();
}

void LevelZeroInboxServer::give_back(std::unique_ptr<InboxLane> lane) {
  if (!lane->usable()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(lane));
}

Status LevelZeroInboxServer::begin(InboxTicket& ticket) {
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

Status LevelZeroInboxServer::launch(const InboxTicket& ticket, Running& running) {
  if (ticket.exchange.op == ReduceOp::none) return running.lane->begin(*send_, *receive_, ticket);
  if (!has_reductions(driver_, device_)) return launch_apart(ticket, running);
  const Name& name = name_of(ticket.exchange);
  Kernel* receive = nullptr;
  const Status found = find_kernel(driver_, device_, name.module, name.kernel, receive);
  if (found.ok()) return running.lane->begin(*send_, *receive, ticket);
  if (found.code() != StatusCode::unsupported) return found;
  log::debug("{} by the CPU: {}", name.kernel, found.message());
  return launch_apart(ticket, running);
}

// Peers count on this rank to combine. Each block at its place, where the CPU finds it.
Status LevelZeroInboxServer::launch_apart(const InboxTicket& ticket, Running& running) {
  InboxTicket all = ticket;
  InboxExchange& exchange = all.exchange;
  void* memory = nullptr;
  ACCORD_TRY(
      runtime_.allocate(index_, MemoryKind::pinned, kInboxRanksMax * exchange.block_bytes, memory));
  running.apart = static_cast<std::byte*>(memory);
  exchange.dst = memory;
  exchange.receive_stride_bytes = exchange.block_bytes;
  return running.lane->begin(*send_, *receive_, all);
}

Status LevelZeroInboxServer::combine(const InboxExchange& exchange, const std::byte* apart) {
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
Status LevelZeroInboxServer::ask(InboxTicket& ticket, bool& ended, bool& complete) {
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

Status LevelZeroInboxServer::poll(InboxTicket& ticket, bool& done) {
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

void LevelZeroInboxServer::stop(InboxTicket& ticket, bool& done) {
  bool complete = false;
  done = ticket.state != InboxTicket::State::running;
  if (!done && !ask(ticket, done, complete).ok()) done = true;
  if (done) ticket.state = InboxTicket::State::idle;
}

// Never destroyed: at exit the driver may be gone before us.
struct Servers {
  std::mutex mutex;
  std::map<int, std::unique_ptr<LevelZeroInboxServer>> by_device;
};

}  // namespace

Status inbox_server(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                    InboxServer*& server) {
  static Servers& servers = *new Servers;
  bool runs = false;
  ACCORD_TRY(has_inboxes(driver, device, runs));
  if (!runs) {
    return Status(StatusCode::unsupported,
                  "level_zero inboxes: no kernels on this device, or no atomics of 64 bits");
  }
  const std::lock_guard lock(servers.mutex);
  std::unique_ptr<LevelZeroInboxServer>& known = servers.by_device[index];
  if (known == nullptr) {
    auto made = std::make_unique<LevelZeroInboxServer>(driver, runtime, index, device);
    ACCORD_TRY(made->open());
    known = std::move(made);
  }
  server = known.get();
  return Status();
}

}  // namespace accord::device::level_zero
