// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/inbox_lane.h"

#include <atomic>
#include <new>
#include <string>

#include "device/level_zero/kernels.h"

namespace accord::device::level_zero {

static_assert(launched::kInboxGroupThreads == kKernelThreads);

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
  ACCORD_TRY(status_of(driver_.memory_allocate_host(device_.context, &on_host,
                                                    sizeof(launched::InboxParameters), 64, &memory),
                       symbol::memory_allocate_host));
  parameters_ = new (memory) launched::InboxParameters{};
  const ze_command_queue_desc_t queue = queue_description(device_.compute, number_);
  ACCORD_TRY(status_of(driver_.queue_create(device_.context, device_.handle, &queue, &queue_),
                       symbol::queue_create));
  ze_fence_desc_t fence{};
  fence.stype = ZE_STRUCTURE_TYPE_FENCE_DESC;
  return status_of(driver_.fence_create(queue_, &fence, &fence_), symbol::fence_create);
}

Status InboxLane::begin(const InboxTicket& ticket) {
  Kernel* send = nullptr;
  Kernel* receive = nullptr;
  ACCORD_TRY(find_kernels(ticket.exchange, send, receive));
  usable_ = false;
  launched::write_parameters(ticket, *parameters_);
  ze_command_list_handle_t list = nullptr;
  ACCORD_TRY(find_list(*send, *receive, launched::groups_of(parameters_->call), list));
  ACCORD_TRY(status_of(driver_.queue_execute(queue_, 1, &list, fence_), symbol::queue_execute));
  usable_ = true;
  return Status();
}

// Who combines on a device combines all elements there.
Status InboxLane::find_kernels(const InboxExchange& exchange, Kernel*& send,
                               Kernel*& receive) const {
  const bool combines = exchange.op != ReduceOp::none;
  if (combines && !has_reductions(driver_, device_))
    return Status(StatusCode::unsupported, "level_zero inboxes: no kernels that reduce");
  ACCORD_TRY(find_kernel(driver_, device_, "inbox", launched::kSend, send));
  const launched::KernelName name = launched::receiving_kernel(exchange);
  const std::string module = combines ? std::string("inbox_") + name.element : "inbox";
  return find_kernel(driver_, device_, module, name.kernel, receive);
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
