// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/registry.h"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/config.h"

extern "C" [[gnu::weak]] void* __curbrk;  // the end of the brk heap (glibc)

namespace accord::device {

#define RUNTIME(name) DeviceRuntime& name##_runtime();
#include "device/runtimes.def"
#undef RUNTIME

namespace {

constexpr std::size_t kRuntimeCount = 0
#define RUNTIME(name) +1
#include "device/runtimes.def"
#undef RUNTIME
    ;

struct RuntimeList {
  std::array<DeviceRuntime*, kRuntimeCount> entries{};
  std::size_t count = 0;

  RuntimeList() {
    const bool host_only = config().runtime == "host";
#define RUNTIME(name) \
  if (!host_only || std::string_view(#name) == "host") entries[count++] = &name##_runtime();
#include "device/runtimes.def"
#undef RUNTIME
  }
};

std::span<DeviceRuntime* const> list() {
  static const RuntimeList runtimes;
  return {runtimes.entries.data(), runtimes.count};
}

// A range of addresses; empty until known.
struct AddressRange {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
  bool contains(std::uintptr_t address) const { return address >= low && address < high; }
};

AddressRange find_stack() noexcept {
  AddressRange range{1, 1};  // known, and empty
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return range;
  void* start = nullptr;
  std::size_t size_bytes = 0;
  if (pthread_attr_getstack(&attributes, &start, &size_bytes) == 0) {
    range.low = reinterpret_cast<std::uintptr_t>(start);
    range.high = range.low + size_bytes;
  }
  pthread_attr_destroy(&attributes);
  return range;
}

// Whether the address is in a caller's frame. Only what lies above our own frame counts: below it,
// and for a coroutine that runs on a stack of its own, there may be any mapping at all.
bool on_own_stack(std::uintptr_t address) noexcept {
  [[gnu::tls_model("initial-exec")]] static thread_local AddressRange stack;
  if (stack.high == 0) stack = find_stack();
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return stack.contains(frame) && address >= frame && address < stack.high;
}

// The start of the program's own image: its code, its static data, and after them the brk heap.
// (The kernel tells where the heap starts too, in /proc/self/stat, but not in every container.)
std::uintptr_t find_program_start() noexcept {
  std::uintptr_t start = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          *static_cast<std::uintptr_t*>(result) = info->dlpi_addr + segment.p_vaddr;
          break;
        }
        return 1;  // the first object is the program
      },
      &start);
  return start;
}

bool in_program_or_heap(std::uintptr_t address) noexcept {
  static const std::uintptr_t start = find_program_start();
  // The C library's own variable, where it has one, and not sbrk(0): UCX patches that into a system
  // call and an event, 430 ns.
  const auto heap_end = reinterpret_cast<std::uintptr_t>(&__curbrk == nullptr ? nullptr : __curbrk);
  return start != 0 && address >= start && address < heap_end;
}

// What is known without asking the runtimes. It only ever rises.
enum class Activity { unknown, none, some };
std::atomic<Activity> activity{Activity::unknown};

std::atomic<bool> wanted{false};  // want_memory

// First use: makes the runtimes, which is when a vendor's driver is looked for.
Activity find_activity() noexcept {
  Activity found = Activity::none;
  for (DeviceRuntime* runtime : list()) {
    if (runtime->active()) found = Activity::some;
  }
  // Unless note_active came first.
  Activity before = Activity::unknown;
  return activity.compare_exchange_strong(before, found, std::memory_order_relaxed) ? found
                                                                                    : before;
}

bool all_inactive() noexcept { return activity.load(std::memory_order_relaxed) == Activity::none; }

bool surely_host(const void* pointer) noexcept {
  Activity known = activity.load(std::memory_order_relaxed);
  if (known == Activity::unknown) known = find_activity();
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return known != Activity::some || pointer == nullptr || on_own_stack(address) ||
         in_program_or_heap(address);
}

// Apart from must_stage, which stays a load and a compare while nothing is active.
[[gnu::noinline]] bool ask_must_stage(const void* pointer) noexcept {
  if (surely_host(pointer)) return false;
  for (DeviceRuntime* runtime : list()) {
    if (runtime->active() && runtime->must_stage(pointer)) return true;
  }
  return false;
}

}  // namespace

// Relaxed suffices: whoever gives the pointer to another thread synchronises with it.
void note_active() noexcept { activity.store(Activity::some, std::memory_order_relaxed); }

bool any_active() noexcept {
  Activity known = activity.load(std::memory_order_relaxed);
  if (known == Activity::unknown) known = find_activity();
  return known == Activity::some;
}

std::span<DeviceRuntime* const> runtimes() { return list(); }

DeviceRuntime& default_runtime() {
  static DeviceRuntime& chosen = []() -> DeviceRuntime& {
    for (DeviceRuntime* runtime : list()) {
      if (config().runtime == runtime->name()) return *runtime;
    }
    for (DeviceRuntime* runtime : list()) {
      if (runtime->device_count() > 0) return *runtime;
    }
    return *list().back();
  }();
  return chosen;
}

void want_memory() noexcept { wanted.store(true, std::memory_order_relaxed); }
bool memory_is_wanted() noexcept { return wanted.load(std::memory_order_relaxed); }

PointerInfo classify(const void* pointer) noexcept {
  PointerInfo info;
  if (surely_host(pointer)) return info;
  for (DeviceRuntime* runtime : list()) {
    if (runtime->active() && runtime->classify(pointer, info)) return info;
  }
  return PointerInfo{};
}

PointerInfo classify_argument(const void* pointer) noexcept {
  PointerInfo info = classify(pointer);
  if (needs_staging(info)) info.runtime->order_behind_program(info.context);
  return info;
}

void order_behind_program(const PointerInfo& first, const PointerInfo& second) noexcept {
  const bool asks = needs_staging(first);
  if (asks) first.runtime->order_behind_program(first.context);
  const bool is_done = asks && second.runtime == first.runtime && second.context == first.context;
  if (needs_staging(second) && !is_done) second.runtime->order_behind_program(second.context);
}

void order_behind_program() noexcept {
  if (!any_active()) return;
  for (DeviceRuntime* runtime : list()) {
    if (runtime->active()) runtime->order_behind_program(nullptr);
  }
}

bool must_stage(const void* pointer) noexcept { return !all_inactive() && ask_must_stage(pointer); }

bool accelerator_present() {
  for (DeviceRuntime* runtime : list()) {
    if (runtime->present()) return true;
  }
  return false;
}

}  // namespace accord::device
