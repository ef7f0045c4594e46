// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies through the CUDA driver: the context to run in, streams and events of our own, kept per
// context. What the program has current, captures or queues on its own streams is left alone.
// Called by cuda/runtime.cpp, and by cuda/reduce.cpp and cuda/pack.cpp, whose work goes the same
// way.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "device/cuda/driver.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {

// Makes a context current to this thread, and its stream capture mode relaxed (so that our calls
// never spoil a capture of the program), for as long as it lives.
class ContextScope {
 public:
  explicit ContextScope(const Driver& driver) noexcept : driver_(driver) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  // One of these, once.

  Result enter(Context context) noexcept;

  // The thread's current context, where that is on the device; else returns false and does nothing.
  bool enter_current(Device device, Result& result) noexcept;

  // The context that owns `pointer`; where it has none (null, memory of pools and of the virtual
  // memory API) the device's primary context, held for the life of this object.
  Result enter_owner(Device device, const void* pointer) noexcept;

  Result enter_current_or_owner(Device device, const void* pointer) noexcept {
    Result result = Result::success;
    return enter_current(device, result) ? result : enter_owner(device, pointer);
  }

  // Any context that the program has, without making one: the thread's current one, or that of a
  // device in use. False: it has none.
  bool enter_any() noexcept;

  Context context() const noexcept { return context_; }

 private:
  Result relax(Context context) noexcept;

  const Driver& driver_;
  Context context_ = nullptr;
  bool pushed_ = false;
  bool relaxed_ = false;
  CaptureMode outer_mode_ = CaptureMode::relaxed;
  Device held_primary_ = -1;
};

// A context as it was: a program that resets its device takes all that is in it along, and the
// context's handle comes back.
struct KnownContext {
  const Driver& driver;
  const Context context;
  const unsigned long long id;  // never used twice

  // Success, or what has become of it; 0.02 us.
  Result still_there() const noexcept {
    unsigned long long now = 0;
    const Result result = driver.context_get_id(context, &now);
    return result == Result::success && now != id ? Result::context_is_destroyed : result;
  }
  Result enter(ContextScope& scope) const noexcept {
    const Result result = still_there();
    return result == Result::success ? scope.enter(context) : result;
  }
};

// How copy() waits for one contiguous copy; batches always take stream_synchronize. The last way
// uses the legacy stream: it waits for the program's own blocking streams and must not be used
// while one captures.
enum class CopyMode { stream_synchronize, stream_poll, legacy_stream };
inline std::atomic<CopyMode> copy_mode{CopyMode::stream_synchronize};

Status copy(const Driver& driver, Device device, std::span<const Copy> copies);
Status copy_begin(const Driver& driver, Device device, std::span<const Copy> copies,
                  CopyTicket& ticket);
Status copy_done(const Driver& driver, CopyTicket& ticket, bool& done);

// As copy_begin, for who puts these copies on the stream in a way of its own.
Status begin_copies(const Driver& driver, Device device, std::span<const Copy> copies,
                    const std::function<Status(Stream)>& enqueue, CopyTicket& ticket);

// Puts copies on a stream of the current context.
Status enqueue_copies(const Driver& driver, std::span<const Copy> copies, Stream stream);

// Any other work, for copy_done to ask after: `enqueue` puts it on a stream of our own of the
// scope's context. After an error nothing is left in flight.
Status begin_work(const Driver& driver, ContextScope& scope,
                  const std::function<Status(Stream)>& enqueue, CopyTicket& ticket);

}  // namespace accord::device::cuda
