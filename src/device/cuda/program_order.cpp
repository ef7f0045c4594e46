// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/program_order.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <system_error>
#include <thread>

#include "base/log.h"

namespace accord::device::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// A context that is idle takes the flag in less. One that is not may run a kernel that waits for
// this very call: then its default streams are awaited instead, and the flag comes when it may.
constexpr auto kSettingLate = std::chrono::milliseconds(50);

// What the program's copies may wait for in their stream. Past that a kernel is taken for one that
// waits for this call.
constexpr auto kDefaultStreamMost = std::chrono::seconds(60);

// The thread's own default stream, where the program was compiled to use these.
const Stream kStreamPerThread = reinterpret_cast<Stream>(std::uintptr_t{2});

// Errors of stream capture: this time the flag could not be set.
bool is_of_capture(Result result) {
  return static_cast<unsigned>(result) >= 900 && static_cast<unsigned>(result) <= 908;
}

Context current_context(const Driver& driver) noexcept {
  Context current = nullptr;
  return driver.context_get_current(&current) == Result::success ? current : nullptr;
}

// For as long as it lives calls of this thread do not count as unsafe to captures.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) noexcept : driver_(driver) {
    relaxed_ = driver_.exchange_capture_mode(&outer_) == Result::success;
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() {
    if (relaxed_) driver_.exchange_capture_mode(&outer_);
  }

 private:
  const Driver& driver_;
  CaptureMode outer_ = CaptureMode::relaxed;
  bool relaxed_ = false;
};

void await_default_streams_of(const Driver& driver, Context context) noexcept {
  ContextScope scope(driver);
  if (scope.enter(context) != Result::success) return;  // destroyed: its copies are gone
  // The question would spoil a capture of a blocking stream, which may be asked after; the program
  // cannot use the default stream meanwhile.
  auto capture = CaptureStatus::none;
  if (driver.stream_is_capturing(nullptr, &capture) != Result::success) return;
  const auto deadline = Clock::now() + kDefaultStreamMost;
  for (const Stream stream : {Stream{nullptr}, kStreamPerThread}) {
    while (driver.stream_query(stream) == Result::not_ready) {
      if (Clock::now() > deadline) {
        log::warn(
            "{}: work in a default stream has not ended for 60 s; MPI goes on without what copies "
            "behind it are to bring",
            driver.runtime);
        return;
      }
      std::this_thread::yield();
    }
  }
}

}  // namespace

struct ProgramOrder::Setting {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Result result = Result::success;
};

int ProgramOrder::device_count(const Driver& driver) noexcept {
  int count = device_count_.load(std::memory_order_relaxed);
  if (count > 0 || driver.device_get_count(&count) != Result::success) return count;
  count = std::min(count, kDevicesMost);
  device_count_.store(count, std::memory_order_relaxed);
  return count;
}

bool ProgramOrder::is_primary(Context context) const noexcept {
  return std::ranges::any_of(primaries_, [&](const std::atomic<Context>& primary) {
    return primary.load(std::memory_order_relaxed) == context;
  });
}

bool ProgramOrder::find_unflagged(const Driver& driver, Context owner, Target& target) noexcept {
  const int count = device_count(driver);  // 0 before the program has initialised the driver
  for (Device device = 0; device < count; ++device) {
    unsigned flags = 0;
    int is_active = 0;
    if (driver.primary_context_get_state(device, &flags, &is_active) != Result::success) continue;
    std::atomic<Context>& primary = primaries_[static_cast<std::size_t>(device)];
    Context context = primary.load(std::memory_order_relaxed);
    if (is_active != 0 && context == nullptr &&
        driver.primary_context_retain(&context, device) == Result::success) {
      primary.store(context, std::memory_order_relaxed);
      driver.primary_context_release(device);
    }
    if ((flags & kContextSyncMemoryOperations) != 0) continue;
    target = {device, is_active != 0 ? context : nullptr, flags};
    return true;
  }
  const Context current = count > 0 ? current_context(driver) : nullptr;
  const auto lacks = [&](Context context) {
    unsigned flags = 0;
    if (driver.context_get_flags(&flags) != Result::success ||
        (flags & kContextSyncMemoryOperations) != 0)
      return false;
    target = {-1, context, flags};
    return true;
  };
  if (current != nullptr && !is_primary(current) && lacks(current)) return true;
  if (owner == nullptr || owner == current || is_primary(owner)) return false;
  ContextScope scope(driver);
  return scope.enter(owner) == Result::success && lacks(owner);
}

void ProgramOrder::order(const Driver& driver, Context owner) noexcept {
  if (without_flag_.load(std::memory_order_relaxed)) {
    await_default_streams(driver, owner);
    return;
  }
  Target target;
  if (setting_late_.load(std::memory_order_relaxed) || find_unflagged(driver, owner, target))
    set_flags(driver, owner);
}

bool ProgramOrder::keep(const Driver& driver, const PointerInfo& memory) noexcept {
  if (memory.kind != MemoryKind::device || memory.context == nullptr || memory.is_mapping)
    return false;
  const DevicePointer address = address_of(memory.base);
  unsigned is_capable = 0;  // of sharing by handle, as no memory of a pool is
  if (driver.pointer_get_attribute(&is_capable, PointerAttribute::is_legacy_ipc_capable, address) !=
          Result::success ||
      is_capable == 0)
    return false;
  const RelaxedCapture relaxed(driver);
  const unsigned yes = 1;
  return driver.pointer_set_attribute(&yes, PointerAttribute::sync_memory_operations, address) ==
         Result::success;
}

void ProgramOrder::set_flags(const Driver& driver, Context owner) noexcept {
  const std::lock_guard lock(mutex_);
  if (setting_) {
    const std::lock_guard inner(setting_->mutex);
    // Copies that came while it was under way may be of either kind.
    await_default_streams(driver, owner);
    if (!setting_->done) return;
    setting_late_.store(false, std::memory_order_relaxed);
  }
  setting_.reset();
  Target target;
  for (int i = 0; i < kDevicesMost + 2 && find_unflagged(driver, owner, target); ++i) {
    if (set_flag(driver, target)) continue;
    await_default_streams(driver, owner);
    return;
  }
}

// False: what the program has copied is still to be waited for.
bool ProgramOrder::set_flag(const Driver& driver, const Target& target) noexcept {
  const auto set = [&driver, target] {
    const RelaxedCapture relaxed(driver);
    const unsigned flags = target.flags | kContextSyncMemoryOperations;
    if (target.device >= 0) return driver.primary_context_set_flags(target.device, flags);
    ContextScope scope(driver);
    const Result entered = scope.enter(target.context);
    return entered == Result::success ? driver.context_set_flags(flags) : entered;
  };
  Result result = Result::success;
  if (target.context == nullptr) {
    result = set();  // nothing runs there
  } else {
    const auto setting = std::make_shared<Setting>();
    const auto run = [set, setting] {
      const Result outcome = set();
      const std::lock_guard lock(setting->mutex);
      setting->result = outcome;
      setting->done = true;
      setting->changed.notify_all();
    };
    try {
      std::thread(run).detach();
    } catch (const std::system_error&) {
      run();
    }
    std::unique_lock lock(setting->mutex);
    if (!setting->changed.wait_for(lock, kSettingLate, [&] { return setting->done; })) {
      setting_ = setting;
      setting_late_.store(true, std::memory_order_relaxed);
      return false;
    }
    result = setting->result;
  }
  if (result == Result::success) return true;
  if (!is_of_capture(result)) {
    log::info("{}: contexts take no flag for synchronous copies; default streams are awaited",
              driver.runtime);
    without_flag_.store(true, std::memory_order_relaxed);
  }
  return false;
}

void ProgramOrder::await_default_streams(const Driver& driver, Context owner) noexcept {
  for (const std::atomic<Context>& primary : primaries_) {
    const Context context = primary.load(std::memory_order_relaxed);
    if (context != nullptr) await_default_streams_of(driver, context);
  }
  const Context current = current_context(driver);
  if (current != nullptr && !is_primary(current)) await_default_streams_of(driver, current);
  if (owner != nullptr && owner != current && !is_primary(owner))
    await_default_streams_of(driver, owner);
}

}  // namespace accord::device::cuda
