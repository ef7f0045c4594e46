// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "device/level_zero/modules.h"

namespace accord::device::level_zero {
namespace {

// A parameter begins where any type may, and as many lanes are made do with a page.
constexpr std::size_t kParameterAlignment = 64;
constexpr std::size_t kParameterBytesMin = 4096;
constexpr std::size_t kRegionMax = std::numeric_limits<std::uint32_t>::max();

bool empty(const Copy& copy) { return copy.rows == 0 || copy.row_bytes == 0; }

bool contiguous(const Copy& copy) {
  return copy.rows == 1 ||
         (copy.dst_pitch_bytes == copy.row_bytes && copy.src_pitch_bytes == copy.row_bytes);
}

// Whether the rows make a rectangle to Level Zero: they do not where they overlap (as reading
// allows), go backwards, or lie too far apart.
bool is_region(const Copy& copy) {
  const auto fits = [&](std::size_t pitch_bytes) {
    return pitch_bytes >= copy.row_bytes && pitch_bytes <= kRegionMax;
  };
  return copy.rows <= kRegionMax && fits(copy.dst_pitch_bytes) && fits(copy.src_pitch_bytes);
}

bool is_one_command(const Copy& copy) { return contiguous(copy) || is_region(copy); }

// One command; `event` (or null) is signalled when it is done.
Status append_command(const Driver& driver, ze_command_list_handle_t list, const Copy& copy,
                      ze_event_handle_t event) {
  if (contiguous(copy)) {
    return status_of(driver.list_append_copy(list, copy.dst, copy.src, copy.rows * copy.row_bytes,
                                             event, 0, nullptr),
                     symbol::list_append_copy);
  }
  const ze_copy_region_t region{.originX = 0,
                                .originY = 0,
                                .originZ = 0,
                                .width = static_cast<std::uint32_t>(copy.row_bytes),
                                .height = static_cast<std::uint32_t>(copy.rows),
                                .depth = 0};
  return status_of(
      driver.list_append_copy_region(
          list, copy.dst, &region, static_cast<std::uint32_t>(copy.dst_pitch_bytes), 0, copy.src,
          &region, static_cast<std::uint32_t>(copy.src_pitch_bytes), 0, event, 0, nullptr),
      symbol::list_append_copy_region);
}

Status append(const Driver& driver, ze_command_list_handle_t list, const Copy& copy) {
  if (empty(copy)) return Status();
  if (is_one_command(copy)) return append_command(driver, list, copy, nullptr);
  Copy row = copy;
  row.rows = 1;
  auto* dst = static_cast<std::byte*>(copy.dst);
  const auto* src = static_cast<const std::byte*>(copy.src);
  for (std::size_t i = 0; i < copy.rows; ++i) {
    row.dst = dst + i * copy.dst_pitch_bytes;
    row.src = src + i * copy.src_pitch_bytes;
    ACCORD_TRY(append_command(driver, list, row, nullptr));
  }
  return Status();
}

}  // namespace

std::size_t Work::add_parameters(const void* bytes, std::size_t size_bytes) {
  const std::size_t offset =
      (parameters.size() + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
  parameters.resize(offset);
  extend_parameters(bytes, size_bytes);
  return offset;
}

void Work::extend_parameters(const void* bytes, std::size_t size_bytes) {
  const auto* const first = static_cast<const std::byte*>(bytes);
  parameters.insert(parameters.end(), first, first + size_bytes);
}

Lane::~Lane() {
  free_parameters();
  if (fence_ != nullptr) driver_.fence_destroy(fence_);
  if (list_ != nullptr) driver_.list_destroy(list_);
  if (queue_ != nullptr) driver_.queue_destroy(queue_);
  if (immediate_ != nullptr) driver_.list_destroy(immediate_);
  if (event_ != nullptr) driver_.event_destroy(event_);
  if (event_pool_ != nullptr) driver_.event_pool_destroy(event_pool_);
}

Status Lane::begin(std::span<const Copy> copies) {
  const Copy* only = nullptr;
  std::size_t count = 0;
  for (const Copy& copy : copies) {
    if (empty(copy)) continue;
    only = &copy;
    ++count;
  }
  if (count == 0) return Status();
  const auto record_all = [&] {
    for (const Copy& copy : copies) ACCORD_TRY(append(driver_, list_, copy));
    return Status();
  };
  Status status =
      count == 1 && is_one_command(*only) ? begin_immediate(*only) : begin_list(record_all);
  usable_ = status.ok();
  return status;
}

Status Lane::begin(const Work& work) {
  Status status = begin_list([&] { return record(work); });
  usable_ = status.ok();
  return status;
}

// One command signals the event itself: where it cannot be appended, nothing has begun.
Status Lane::begin_immediate(const Copy& copy) {
  ACCORD_TRY(make_immediate());
  ACCORD_TRY(append_command(driver_, immediate_, copy, event_));
  way_ = Way::immediate;
  return Status();
}

template <class Record>
Status Lane::begin_list(const Record& record) {
  ACCORD_TRY(make_list());
  ACCORD_TRY(record());
  ACCORD_TRY(status_of(driver_.list_close(list_), symbol::list_close));
  ACCORD_TRY(status_of(driver_.queue_execute(queue_, 1, &list_, fence_), symbol::queue_execute));
  way_ = Way::list;
  return Status();
}

// Commands of a list may overtake each other where no barrier keeps them.
Status Lane::record(const Work& work) {
  if (!work.launches.empty()) {
    ACCORD_TRY(place_parameters(work.parameters));
    const Copy upload{
        .dst = device_parameters_, .src = host_parameters_, .row_bytes = work.parameters.size()};
    ACCORD_TRY(append(driver_, list_, upload));
    ACCORD_TRY(status_of(driver_.list_append_barrier(list_, nullptr, 0, nullptr),
                         symbol::list_append_barrier));
  }
  for (const Copy& copy : work.copies) ACCORD_TRY(append(driver_, list_, copy));
  for (const Launch& launch : work.launches) ACCORD_TRY(record(launch));
  return Status();
}

Status Lane::record(const Launch& launch) {
  void* const parameter = static_cast<std::byte*>(device_parameters_) + launch.offset_bytes;
  const ze_group_count_t groups{launch.groups, 1, 1};
  const std::lock_guard lock(launch.kernel->mutex);
  ACCORD_TRY(status_of(driver_.kernel_set_argument(launch.kernel->handle, 0, sizeof parameter,
                                                   static_cast<const void*>(&parameter)),
                       symbol::kernel_set_argument));
  return status_of(
      driver_.list_append_kernel(list_, launch.kernel->handle, &groups, nullptr, 0, nullptr),
      symbol::list_append_kernel);
}

// The lane keeps the memory: by the time it is used again, the kernels before have ended.
Status Lane::place_parameters(const std::vector<std::byte>& parameters) {
  if (parameters.size() > parameter_bytes_) {
    free_parameters();
    const std::size_t size_bytes = std::max(kParameterBytesMin, std::bit_ceil(parameters.size()));
    ze_host_mem_alloc_desc_t on_host{};
    on_host.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    ACCORD_TRY(status_of(driver_.memory_allocate_host(device_.context, &on_host, size_bytes,
                                                      kParameterAlignment, &host_parameters_),
                         symbol::memory_allocate_host));
    ze_device_mem_alloc_desc_t on_device{};
    on_device.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    ACCORD_TRY(status_of(
        driver_.memory_allocate_device(device_.context, &on_device, size_bytes, kParameterAlignment,
                                       device_.handle, &device_parameters_),
        symbol::memory_allocate_device));
    parameter_bytes_ = size_bytes;
  }
  std::memcpy(host_parameters_, parameters.data(), parameters.size());
  return Status();
}

void Lane::free_parameters() {
  for (void** memory : {&host_parameters_, &device_parameters_}) {
    if (*memory != nullptr) driver_.memory_free(device_.context, *memory);
    *memory = nullptr;
  }
  parameter_bytes_ = 0;
}

// The event's scope is the host's: what it waits for is to be seen by the CPU.
Status Lane::make_immediate() {
  if (event_ != nullptr) return Status();
  const ze_command_queue_desc_t queue = queue_description(engines_, number_);
  ACCORD_TRY(
      status_of(driver_.list_create_immediate(device_.context, device_.handle, &queue, &immediate_),
                symbol::list_create_immediate));
  ze_event_pool_desc_t pool{};
  pool.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
  pool.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
  pool.count = 1;
  ze_device_handle_t device = device_.handle;
  ACCORD_TRY(status_of(driver_.event_pool_create(device_.context, &pool, 1, &device, &event_pool_),
                       symbol::event_pool_create));
  ze_event_desc_t event{};
  event.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
  event.signal = ZE_EVENT_SCOPE_FLAG_HOST;
  event.wait = ZE_EVENT_SCOPE_FLAG_HOST;
  return status_of(driver_.event_create(event_pool_, &event, &event_), symbol::event_create);
}

Status Lane::make_list() {
  if (fence_ != nullptr) return Status();
  const ze_command_queue_desc_t queue = queue_description(engines_, number_);
  ACCORD_TRY(status_of(driver_.queue_create(device_.context, device_.handle, &queue, &queue_),
                       symbol::queue_create));
  ze_command_list_desc_t list{};
  list.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC;
  list.commandQueueGroupOrdinal = engines_.group;
  ACCORD_TRY(status_of(driver_.list_create(device_.context, device_.handle, &list, &list_),
                       symbol::list_create));
  ze_fence_desc_t fence{};
  fence.stype = ZE_STRUCTURE_TYPE_FENCE_DESC;
  return status_of(driver_.fence_create(queue_, &fence, &fence_), symbol::fence_create);
}

Status Lane::poll(bool& done) {
  done = true;
  if (way_ == Way::idle) return Status();
  const bool immediate = way_ == Way::immediate;
  const ze_result_t result = immediate ? driver_.event_query(event_) : driver_.fence_query(fence_);
  done = result != ZE_RESULT_NOT_READY;
  if (!done) return Status();
  Status status = status_of(result, immediate ? symbol::event_query : symbol::fence_query);
  return status.ok() ? finish() : give_up(std::move(status));
}

Status Lane::wait() {
  if (way_ == Way::idle) return Status();
  const bool immediate = way_ == Way::immediate;
  Status status =
      immediate
          ? status_of(driver_.event_synchronize(event_, kNoTimeOut), symbol::event_synchronize)
          : status_of(driver_.fence_synchronize(fence_, kNoTimeOut), symbol::fence_synchronize);
  return status.ok() ? finish() : give_up(std::move(status));
}

// The bytes are there. Makes the lane ready for the next batch; where it cannot be made so, only
// the lane is lost.
Status Lane::finish() {
  if (way_ == Way::immediate) {
    usable_ = driver_.event_reset(event_) == ZE_RESULT_SUCCESS;
  } else {
    usable_ = driver_.fence_reset(fence_) == ZE_RESULT_SUCCESS &&
              driver_.list_reset(list_) == ZE_RESULT_SUCCESS;
  }
  way_ = Way::idle;
  return Status();
}

// Nobody can say whether the work has ended; so it is asked for in the other ways there are before
// the memory is given back to its owner.
Status Lane::give_up(Status status) {
  if (way_ == Way::immediate) {
    (void)driver_.event_synchronize(event_, kNoTimeOut);
    while (driver_.event_query(event_) == ZE_RESULT_NOT_READY) {
    }
  } else {
    (void)driver_.queue_synchronize(queue_, kNoTimeOut);
  }
  way_ = Way::idle;
  usable_ = false;
  return status;
}

std::unique_ptr<Lane> Lanes::borrow(const Driver& driver, const Device& device, Engines engines) {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Lane>(driver, device, engines, made_++);
  std::unique_ptr<Lane> lane = std::move(idle_.back());
  idle_.pop_back();
  return lane;
}

void Lanes::give_back(std::unique_ptr<Lane> lane) {
  if (!lane->usable()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(lane));
}

}  // namespace accord::device::level_zero
