// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of launched inboxes, done by the CPU as exchanges of the host runtime are.
#include "library_inbox.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "device/host/inbox.h"
#include "device/launched_inbox_kernels.h"

namespace accord::test::hip {
namespace {

using namespace accord::device;
using launched::InboxParameters;

// What a launch has to do, by addresses that the CPU reaches.
struct Exchange {
  InboxExchange exchange;
  std::vector<InboxPart> parts;
  std::array<std::byte*, kInboxRanksMax> inboxes{};
  Held held;
  bool good = true;

  std::byte* reachable(std::uint64_t address, std::size_t size_bytes) {
    if (size_bytes == 0) return nullptr;
    std::byte* const there =
        address_in_kernel(reinterpret_cast<const void*>(address), size_bytes, held);
    good = good && there != nullptr;
    return there;
  }
};

// Up to the last block of those ranks.
std::size_t bytes_of_blocks(std::uint64_t ranks, std::size_t block_bytes,
                            std::size_t stride_bytes) {
  if (ranks == 0) return 0;
  return block_bytes + stride_bytes * static_cast<std::size_t>(std::bit_width(ranks) - 1);
}

std::size_t inbox_bytes_of(const launched::InboxCall& call, std::uint32_t rank) {
  return inbox_lane_offset(inbox_lane(static_cast<int>(rank), call.turn), call.lane_bytes) +
         2 * call.lane_bytes;
}

std::shared_ptr<Exchange> exchange_of(const InboxParameters& parameters, bool sends) {
  const launched::InboxCall& call = parameters.call;
  auto made = std::make_shared<Exchange>();
  InboxExchange& exchange = made->exchange;
  exchange = {.lane_bytes = call.lane_bytes,
              .rank = static_cast<int>(call.rank),
              .epoch = call.epoch,
              .turn = call.turn,
              .block_bytes = call.block_bytes,
              .send_stride_bytes = call.send_stride_bytes,
              .receive_stride_bytes = call.receive_stride_bytes,
              .send_to = sends ? call.send_to : 0,
              .receive_from = sends ? 0 : call.receive_from};
  if (call.ranks == 0) return made;
  exchange.inbox = made->reachable(call.inbox, inbox_bytes_of(call, call.ranks - 1));
  for (std::uint32_t rank = 0; rank < call.ranks && call.in_parts != 0; ++rank) {
    const launched::InboxCallPart& part = parameters.parts[rank];
    InboxPart& here = made->parts.emplace_back();
    here.send_bytes =
        (exchange.send_to & inbox_bit(static_cast<int>(rank))) != 0 ? part.send_bytes : 0;
    here.receive_bytes =
        (exchange.receive_from & inbox_bit(static_cast<int>(rank))) != 0 ? part.receive_bytes : 0;
    here.src = made->reachable(part.src, here.send_bytes);
    here.dst = made->reachable(part.dst, here.receive_bytes);
  }
  exchange.parts = made->parts;
  if (call.in_parts == 0) {
    exchange.src = made->reachable(
        call.src, bytes_of_blocks(exchange.send_to, call.block_bytes, call.send_stride_bytes));
    exchange.dst = made->reachable(
        call.dst,
        bytes_of_blocks(exchange.receive_from, call.block_bytes, call.receive_stride_bytes));
  }
  for (std::uint32_t peer = 0; peer < call.ranks && made->good; ++peer) {
    if ((exchange.send_to & inbox_bit(static_cast<int>(peer))) == 0) continue;
    std::uint64_t inbox = 0;
    std::memcpy(&inbox, exchange.inbox + peer * sizeof inbox, sizeof inbox);
    made->inboxes[peer] = made->reachable(inbox, inbox_bytes_of(call, call.rank));
  }
  return made;
}

}  // namespace

bool find_inbox_kernel(std::string_view name, InboxKernel& found) {
  if (name == "accord_inbox_send" || name == "accord_inbox_receive") {
    found = {.sends = name == "accord_inbox_send"};
    return true;
  }
#define STAND_IN_KERNEL(wanted, type, operation)                     \
  if (name == "accord_inbox_" #wanted "_" #operation) {              \
    found = {.element = Element::wanted, .op = ReduceOp::operation}; \
    return true;                                                     \
  }
  ACCORD_REDUCTIONS(STAND_IN_KERNEL)
#undef STAND_IN_KERNEL
  return false;
}

Result launch_inbox(const InboxKernel& kernel, void* parameters, device::cuda::Stream stream) {
  auto* const given = static_cast<InboxParameters*>(parameters);
  const std::shared_ptr<Exchange> work = exchange_of(*given, kernel.sends);
  if (!work->good) return kIllegalAddress;
  work->exchange.op = kernel.op;
  work->exchange.element = kernel.element;
  const std::uint32_t polls = given->call.polls;
  return enqueue(stream, [=, sends = kernel.sends] {
    if (sends) return inbox_send(work->exchange, work->inboxes);
    for (std::uint32_t i = 0; i < polls; ++i) {
      if (inbox_receive(work->exchange)) return;
      std::this_thread::yield();
    }
    std::atomic_ref(given->late).store(1, std::memory_order_release);
  });
}

}  // namespace accord::test::hip
