// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Command lists of the test driver, and the threads that execute them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include "driver.h"

namespace accord::test::level_zero {
namespace {

// A copy, a launch (with code), or a barrier (with neither rows nor code).
struct Command {
  void* dst = nullptr;
  const void* src = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 1;
  std::size_t dst_pitch_bytes = 0;
  std::size_t src_pitch_bytes = 0;
  Launch launch = {};

  bool is_barrier() const { return rows == 0 && launch.code == nullptr; }
};

struct Queue : Object {
  Queue() : Object(Kind::queue) {}
};

struct List : Object {
  List() : Object(Kind::list) {}
  Device* device = nullptr;
  bool computes = false;
  bool immediate = false;
  bool closed = false;
  std::vector<Command> commands;
};

// A fence or an event.
struct Signal : Object {
  using Object::Object;
  bool set = false;
};

// Events of a pool keep it in use.
struct Event : Signal {
  Event() : Signal(Kind::event) {}
  Object* pool = nullptr;
};

struct Job {
  std::vector<Command> commands;
  std::vector<Object*> uses;
  Signal* signal;  // or null
};

// The bytes of a side, which must lie in one allocation or be the host's.
std::byte* reach(const void* address, std::size_t row_bytes, std::size_t rows,
                 std::size_t pitch_bytes, std::vector<std::shared_ptr<Allocation>>& held) {
  auto* const first = static_cast<std::byte*>(const_cast<void*>(address));
  std::shared_ptr<Allocation> owner = find_allocation(address);
  if (owner == nullptr) return first;
  const std::size_t length_bytes = (rows - 1) * pitch_bytes + row_bytes;
  const auto offset = static_cast<std::size_t>(first - owner->user);
  if (length_bytes > owner->size_bytes - offset) fail("a copy leaves its allocation");
  held.push_back(owner);
  return owner->alias + offset;
}

void execute(const Command& command) {
  if (command.launch.code != nullptr) return run(command.launch);
  std::vector<std::shared_ptr<Allocation>> held;
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    dst = reach(command.dst, command.row_bytes, command.rows, command.dst_pitch_bytes, held);
    src = reach(command.src, command.row_bytes, command.rows, command.src_pitch_bytes, held);
  }
  for (std::size_t row = 0; row < command.rows; ++row) {
    std::memcpy(dst + row * command.dst_pitch_bytes, src + row * command.src_pitch_bytes,
                command.row_bytes);
  }
}

// Between two barriers backwards.
void execute(const std::vector<Command>& commands) {
  for (auto first = commands.begin(); first != commands.end();) {
    auto last =
        std::find_if(first, commands.end(), [](const Command& x) { return x.is_barrier(); });
    for (auto next = last; next != first;) execute(*--next);
    first = last == commands.end() ? last : last + 1;
  }
}

// The threads that take jobs from one queue: a real device has several engines, too.
class Engines {
 public:
  void submit(Job job) {
    const std::lock_guard lock(state().mutex);
    while (threads_ < kThreads) {
      std::thread([this] { run(); }).detach();
      ++threads_;
    }
    for (Object* object : job.uses) ++object->users;
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }

  // Waits until `done`, for at most so many nanoseconds.
  ze_result_t wait(std::uint64_t time_out_ns, const std::function<bool()>& done) {
    std::unique_lock lock(state().mutex);
    const auto bounded = static_cast<std::int64_t>(std::min(time_out_ns, std::uint64_t{1} << 60));
    return changed_.wait_for(lock, std::chrono::nanoseconds(bounded), done) ? ZE_RESULT_SUCCESS
                                                                            : ZE_RESULT_NOT_READY;
  }

 private:
  static constexpr int kThreads = 2;

  void run() {
    static const long delay_us = [] {
      const char* text = std::getenv("ACCORD_TEST_ZE_DELAY_US");
      return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    }();
    for (;;) {
      Job job;
      {
        std::unique_lock lock(state().mutex);
        changed_.wait(lock, [&] { return !jobs_.empty(); });
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      if (delay_us > 0) ::usleep(static_cast<useconds_t>(delay_us));
      execute(job.commands);
      const std::lock_guard lock(state().mutex);
      for (Object* object : job.uses) --object->users;
      if (job.signal != nullptr) job.signal->set = true;
      changed_.notify_all();
    }
  }

  std::condition_variable changed_;
  std::deque<Job> jobs_;
  int threads_ = 0;
};

Engines& engines() {
  static Engines& all = *new Engines;
  return all;
}

bool is_place(ze_context_handle_t context, ze_device_handle_t device) {
  const std::lock_guard lock(state().mutex);
  return find_object(context, Object::Kind::context) != nullptr &&
         find_object(device, Object::Kind::device) != nullptr;
}

// What device_get_queue_groups says there is.
bool is_queue(const ze_command_queue_desc_t& queue) {
  const bool named = (queue.flags & ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY) != 0;
  return queue.stype == ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC && queue.ordinal < 2 &&
         queue.index <= (named ? queue.ordinal : 0);
}

ze_result_t queue_create(ze_context_handle_t context, ze_device_handle_t device,
                         const ze_command_queue_desc_t* description,
                         ze_command_queue_handle_t* queue) {
  if (!is_place(context, device)) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (!is_queue(*description)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  *queue = static_cast<ze_command_queue_handle_t>(add(std::make_unique<Queue>()));
  return ZE_RESULT_SUCCESS;
}

ze_result_t queue_destroy(ze_command_queue_handle_t queue) {
  return destroy(queue, Object::Kind::queue);
}

ze_result_t queue_execute(ze_command_queue_handle_t queue_handle, std::uint32_t count,
                          ze_command_list_handle_t* handles, ze_fence_handle_t fence_handle) {
  Job job{};
  {
    const std::lock_guard lock(state().mutex);
    Object* const queue = find_object(queue_handle, Object::Kind::queue);
    job.signal = find<Signal>(fence_handle, Object::Kind::fence);
    if (queue == nullptr || (fence_handle != nullptr && job.signal == nullptr))
      return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (job.signal != nullptr && job.signal->set)
      return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    job.uses.push_back(queue);
    if (job.signal != nullptr) job.uses.push_back(job.signal);
    for (std::uint32_t i = 0; i < count; ++i) {
      auto* const list = find<List>(handles[i], Object::Kind::list);
      if (list == nullptr || list->immediate) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
      if (!list->closed) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
      job.uses.push_back(list);
      job.commands.insert(job.commands.end(), list->commands.begin(), list->commands.end());
    }
  }
  engines().submit(std::move(job));
  return ZE_RESULT_SUCCESS;
}

ze_result_t queue_synchronize(ze_command_queue_handle_t handle, std::uint64_t time_out_ns) {
  return engines().wait(time_out_ns, [&] {
    const Object* queue = find_object(handle, Object::Kind::queue);
    return queue == nullptr || queue->users == 0;
  });
}

ze_result_t make_list(ze_context_handle_t context, ze_device_handle_t device, std::uint32_t group,
                      bool immediate, ze_command_list_handle_t* list) {
  if (!is_place(context, device)) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  auto made = std::make_unique<List>();
  made->device = reinterpret_cast<Device*>(device);
  made->computes = group == 0;
  made->immediate = immediate;
  *list = static_cast<ze_command_list_handle_t>(add(std::move(made)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t list_create(ze_context_handle_t context, ze_device_handle_t device,
                        const ze_command_list_desc_t* description, ze_command_list_handle_t* list) {
  if (description->stype != ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  return make_list(context, device, description->commandQueueGroupOrdinal, false, list);
}

ze_result_t list_create_immediate(ze_context_handle_t context, ze_device_handle_t device,
                                  const ze_command_queue_desc_t* description,
                                  ze_command_list_handle_t* list) {
  if (!is_queue(*description)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  return make_list(context, device, description->ordinal, true, list);
}

ze_result_t list_destroy(ze_command_list_handle_t list) {
  return destroy(list, Object::Kind::list);
}

ze_result_t list_close(ze_command_list_handle_t handle) {
  const std::lock_guard lock(state().mutex);
  auto* const list = find<List>(handle, Object::Kind::list);
  if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (list->closed || list->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  list->closed = true;
  return ZE_RESULT_SUCCESS;
}

ze_result_t list_reset(ze_command_list_handle_t handle) {
  const std::lock_guard lock(state().mutex);
  auto* const list = find<List>(handle, Object::Kind::list);
  if (list == nullptr || list->immediate) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (list->users != 0) fail("a list is reset while it is executed");
  list->closed = false;
  list->commands.clear();
  return ZE_RESULT_SUCCESS;
}

// Into the list, or at once where it is immediate.
ze_result_t append(ze_command_list_handle_t handle, const Command& command,
                   ze_event_handle_t event_handle) {
  Job job{};
  {
    const std::lock_guard lock(state().mutex);
    auto* const list = find<List>(handle, Object::Kind::list);
    job.signal = find<Signal>(event_handle, Object::Kind::event);
    if (list == nullptr || (event_handle != nullptr && job.signal == nullptr))
      return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (list->closed) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (job.signal != nullptr && job.signal->set)
      return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    if (!list->immediate) {
      if (event_handle != nullptr) fail("events in lists are not played here");
      list->commands.push_back(command);
      return ZE_RESULT_SUCCESS;
    }
    job.uses.push_back(list);
    if (job.signal != nullptr) job.uses.push_back(job.signal);
    job.commands.push_back(command);
  }
  engines().submit(std::move(job));
  return ZE_RESULT_SUCCESS;
}

ze_result_t append_copy(ze_command_list_handle_t list, void* dst, const void* src,
                        std::size_t size_bytes, ze_event_handle_t event, std::uint32_t waits,
                        ze_event_handle_t*) {
  if (waits != 0 || size_bytes == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  return append(list, {.dst = dst, .src = src, .row_bytes = size_bytes}, event);
}

ze_result_t append_copy_region(ze_command_list_handle_t list, void* dst,
                               const ze_copy_region_t* dst_region, std::uint32_t dst_pitch_bytes,
                               std::uint32_t, const void* src, const ze_copy_region_t* src_region,
                               std::uint32_t src_pitch_bytes, std::uint32_t,
                               ze_event_handle_t event, std::uint32_t waits, ze_event_handle_t*) {
  if (waits != 0 || dst_region->width == 0 || dst_region->height == 0 || dst_region->depth != 0 ||
      std::memcmp(dst_region, src_region, sizeof *dst_region) != 0 || dst_region->originX != 0 ||
      dst_region->originY != 0 || dst_pitch_bytes < dst_region->width ||
      src_pitch_bytes < src_region->width) {
    return ZE_RESULT_ERROR_INVALID_SIZE;
  }
  return append(list,
                {.dst = dst,
                 .src = src,
                 .row_bytes = dst_region->width,
                 .rows = dst_region->height,
                 .dst_pitch_bytes = dst_pitch_bytes,
                 .src_pitch_bytes = src_pitch_bytes},
                event);
}

ze_result_t append_barrier(ze_command_list_handle_t list, ze_event_handle_t event,
                           std::uint32_t waits, ze_event_handle_t*) {
  if (waits != 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  return append(list, {.rows = 0}, event);
}

ze_result_t append_kernel(ze_command_list_handle_t handle, ze_kernel_handle_t kernel,
                          const ze_group_count_t* groups, ze_event_handle_t event,
                          std::uint32_t waits, ze_event_handle_t*) {
  if (waits != 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  Command command{.rows = 0};
  {
    const std::lock_guard lock(state().mutex);
    const auto* list = find<List>(handle, Object::Kind::list);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!list->computes) fail("a kernel for engines that only copy");
    const ze_result_t made = make_launch(kernel, *list->device, *groups, command.launch);
    if (made != ZE_RESULT_SUCCESS) return made;
  }
  return append(handle, command, event);
}

ze_result_t signal_query(const void* handle, Object::Kind kind) {
  const std::lock_guard lock(state().mutex);
  const auto* signal = find<Signal>(handle, kind);
  if (signal == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  return signal->set ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

ze_result_t signal_wait(const void* handle, Object::Kind kind, std::uint64_t time_out_ns) {
  return engines().wait(time_out_ns, [&] {
    const auto* signal = find<Signal>(handle, kind);
    return signal == nullptr || signal->set;
  });
}

ze_result_t signal_reset(const void* handle, Object::Kind kind) {
  const std::lock_guard lock(state().mutex);
  auto* const signal = find<Signal>(handle, kind);
  if (signal == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (signal->users != 0) fail("a fence or event is reset before it is signalled");
  signal->set = false;
  return ZE_RESULT_SUCCESS;
}

ze_result_t fence_create(ze_command_queue_handle_t queue, const ze_fence_desc_t* description,
                         ze_fence_handle_t* fence) {
  {
    const std::lock_guard lock(state().mutex);
    if (find_object(queue, Object::Kind::queue) == nullptr)
      return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  }
  if (description->stype != ZE_STRUCTURE_TYPE_FENCE_DESC) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  *fence = static_cast<ze_fence_handle_t>(add(std::make_unique<Signal>(Object::Kind::fence)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t fence_destroy(ze_fence_handle_t fence) { return destroy(fence, Object::Kind::fence); }
ze_result_t fence_query(ze_fence_handle_t fence) {
  return signal_query(fence, Object::Kind::fence);
}
ze_result_t fence_wait(ze_fence_handle_t fence, std::uint64_t time_out_ns) {
  return signal_wait(fence, Object::Kind::fence, time_out_ns);
}
ze_result_t fence_reset(ze_fence_handle_t fence) {
  return signal_reset(fence, Object::Kind::fence);
}

ze_result_t event_pool_create(ze_context_handle_t context, const ze_event_pool_desc_t* description,
                              std::uint32_t devices, ze_device_handle_t* device,
                              ze_event_pool_handle_t* pool) {
  if (devices != 1 || !is_place(context, *device)) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (description->stype != ZE_STRUCTURE_TYPE_EVENT_POOL_DESC ||
      (description->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE) == 0) {
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  *pool =
      static_cast<ze_event_pool_handle_t>(add(std::make_unique<Object>(Object::Kind::event_pool)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t event_pool_destroy(ze_event_pool_handle_t pool) {
  return destroy(pool, Object::Kind::event_pool);
}

ze_result_t event_create(ze_event_pool_handle_t pool, const ze_event_desc_t* description,
                         ze_event_handle_t* event) {
  if (description->stype != ZE_STRUCTURE_TYPE_EVENT_DESC || description->index != 0)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  auto made = std::make_unique<Event>();
  {
    const std::lock_guard lock(state().mutex);
    made->pool = find_object(pool, Object::Kind::event_pool);
    if (made->pool == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    ++made->pool->users;
  }
  *event = static_cast<ze_event_handle_t>(add(std::move(made)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t event_destroy(ze_event_handle_t handle) {
  {
    const std::lock_guard lock(state().mutex);
    auto* const event = find<Event>(handle, Object::Kind::event);
    if (event != nullptr) --event->pool->users;
  }
  return destroy(handle, Object::Kind::event);
}
ze_result_t event_query(ze_event_handle_t event) {
  return signal_query(event, Object::Kind::event);
}
ze_result_t event_wait(ze_event_handle_t event, std::uint64_t time_out_ns) {
  return signal_wait(event, Object::Kind::event, time_out_ns);
}
ze_result_t event_reset(ze_event_handle_t event) {
  return signal_reset(event, Object::Kind::event);
}

}  // namespace

void fill(ze_command_queue_dditable_t& table) {
  table.pfnCreate = Entry<"zeCommandQueueCreate", queue_create>::call;
  table.pfnDestroy = Entry<"zeCommandQueueDestroy", queue_destroy>::call;
  table.pfnExecuteCommandLists = Entry<"zeCommandQueueExecuteCommandLists", queue_execute>::call;
  table.pfnSynchronize = Entry<"zeCommandQueueSynchronize", queue_synchronize>::call;
}

void fill(ze_command_list_dditable_t& table) {
  table.pfnCreate = Entry<"zeCommandListCreate", list_create>::call;
  table.pfnCreateImmediate = Entry<"zeCommandListCreateImmediate", list_create_immediate>::call;
  table.pfnDestroy = Entry<"zeCommandListDestroy", list_destroy>::call;
  table.pfnClose = Entry<"zeCommandListClose", list_close>::call;
  table.pfnReset = Entry<"zeCommandListReset", list_reset>::call;
  table.pfnAppendMemoryCopy = Entry<"zeCommandListAppendMemoryCopy", append_copy>::call;
  table.pfnAppendMemoryCopyRegion =
      Entry<"zeCommandListAppendMemoryCopyRegion", append_copy_region>::call;
  table.pfnAppendBarrier = Entry<"zeCommandListAppendBarrier", append_barrier>::call;
  table.pfnAppendLaunchKernel = Entry<"zeCommandListAppendLaunchKernel", append_kernel>::call;
}

void fill(ze_fence_dditable_t& table) {
  table.pfnCreate = Entry<"zeFenceCreate", fence_create>::call;
  table.pfnDestroy = Entry<"zeFenceDestroy", fence_destroy>::call;
  table.pfnQueryStatus = Entry<"zeFenceQueryStatus", fence_query>::call;
  table.pfnHostSynchronize = Entry<"zeFenceHostSynchronize", fence_wait>::call;
  table.pfnReset = Entry<"zeFenceReset", fence_reset>::call;
}

void fill(ze_event_pool_dditable_t& table) {
  table.pfnCreate = Entry<"zeEventPoolCreate", event_pool_create>::call;
  table.pfnDestroy = Entry<"zeEventPoolDestroy", event_pool_destroy>::call;
}

void fill(ze_event_dditable_t& table) {
  table.pfnCreate = Entry<"zeEventCreate", event_create>::call;
  table.pfnDestroy = Entry<"zeEventDestroy", event_destroy>::call;
  table.pfnQueryStatus = Entry<"zeEventQueryStatus", event_query>::call;
  table.pfnHostSynchronize = Entry<"zeEventHostSynchronize", event_wait>::call;
  table.pfnHostReset = Entry<"zeEventHostReset", event_reset>::call;
}

}  // namespace accord::test::level_zero
