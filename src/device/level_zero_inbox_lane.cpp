// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero_inbox_lane.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <new>

namespace accord::device::level_zero {
namespace {

constexpr std::uint64_t kNoTimeOut = std::numeric_limits<std::uint64_t>::max();

// Work-groups of a launch: one for what it can take at once, since the others would have nothing
// to do.
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

}  // namespace

InboxLane::~InboxLane() {
  for (const Recorded& one : recorded_) driver_.list_destroy(one.list);
  if (fence_ != nullptr) driver_.fence_destroy(fence_);
  if (queue_ != nullptr) driver_.queue_destroy(queue_);
  if (parameters_ != nullptr) driver_.memory_free(device_.context, parameters_);
}

Status InboxLane::open() {
  void* memory = nullptr;
  ze_host_mem_alloc_desc_t on_host{};
  on_host.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
  ACCORD_TRY(status_of(
      driver_.memory_allocate_host(device_.context, &on_host, sizeof(InboxParameters), 64, &memory),
      symbol::memory_allocate_host));
  parameters_ = new (memory) InboxParameters{};
  const ze_command_queue_desc_t queue = queue_description(device_.compute, number_);
  ACCORD_TRY(status_of(driver_.queue_create(device_.context, device_.handle, &queue, &queue_),
                       symbol::queue_create));
  ze_fence_desc_t fence{};
  fence.stype = ZE_STRUCTURE_TYPE_FENCE_DESC;
  return status_of(driver_.fence_create(queue_, &fence, &fence_), symbol::fence_create);
}

Status InboxLane::begin(Kernel& send, Kernel& receive, const InboxTicket& ticket) {
  usable_ = false;
  write_parameters(ticket, *parameters_);
  const InboxCall& call = parameters_->call;
  const std::uint32_t groups = call.units * call.ranks <= kKernelThreads ? 1 : kManyGroups;
  ze_command_list_handle_t list = nullptr;
  ACCORD_TRY(find_list(send, receive, groups, list));
  ACCORD_TRY(status_of(driver_.queue_execute(queue_, 1, &list, fence_), symbol::queue_execute));
  usable_ = true;
  return Status();
}

// The same for all exchanges of a kind, since the parameter stays where it is.
Status InboxLane::find_list(Kernel& send, Kernel& receive, std::uint32_t groups,
                            ze_command_list_handle_t& list) {
  for (const Recorded& one : recorded_) {
    if (one.receive != &receive || one.groups != groups) continue;
    list = one.list;
    return Status();
  }
  ze_command_list_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC;
  description.commandQueueGroupOrdinal = device_.compute.group;
  ACCORD_TRY(status_of(driver_.list_create(device_.context, device_.handle, &description, &list),
                       symbol::list_create));
  Status status = record(list, send, receive, groups);
  if (status.ok()) {
    recorded_.push_back({&receive, groups, list});
  } else {
    driver_.list_destroy(list);
  }
  return status;
}

// What is sent may lie where something is received.
Status InboxLane::record(ze_command_list_handle_t list, Kernel& send, Kernel& receive,
                         std::uint32_t groups) {
  ACCORD_TRY(append(list, send, groups));
  ACCORD_TRY(status_of(driver_.list_append_barrier(list, nullptr, 0, nullptr),
                       symbol::list_append_barrier));
  ACCORD_TRY(append(list, receive, groups));
  return status_of(driver_.list_close(list), symbol::list_close);
}

Status InboxLane::append(ze_command_list_handle_t list, Kernel& kernel, std::uint32_t groups) {
  const ze_group_count_t count{groups, 1, 1};
  const std::lock_guard lock(kernel.mutex);
  ACCORD_TRY(
      status_of(driver_.kernel_set_argument(kernel.handle, 0, sizeof parameters_, &parameters_),
                symbol::kernel_set_argument));
  return status_of(driver_.list_append_kernel(list, kernel.handle, &count, nullptr, 0, nullptr),
                   symbol::list_append_kernel);
}

Status InboxLane::poll(bool& ended, bool& complete) {
  const ze_result_t result = driver_.fence_query(fence_);
  ended = result != ZE_RESULT_NOT_READY;
  complete = false;
  if (!ended) return Status();
  if (result != ZE_RESULT_SUCCESS) {
    // Nobody can say whether the kernels have ended, so that is asked for in another way.
    (void)driver_.queue_synchronize(queue_, kNoTimeOut);
    usable_ = false;
    return status_of(result, symbol::fence_query);
  }
  complete = std::atomic_ref(parameters_->late).load(std::memory_order_acquire) == 0;
  usable_ = driver_.fence_reset(fence_) == ZE_RESULT_SUCCESS;
  return Status();
}

}  // namespace accord::device::level_zero
