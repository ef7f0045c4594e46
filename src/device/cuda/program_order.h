// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Order behind what the program has copied. CUDA's synchronous calls return before copies within a
// device, copies from pageable memory and memsets have landed, and our streams do not wait for the
// program's. So every context gets the flag CU_CTX_SYNC_MEMOPS, with which these calls wait
// themselves; a context that has lost it (cudaSetDeviceFlags, cudaDeviceReset) or is new gets it in
// the next MPI call. Called by cuda/runtime.cpp.
//
// Measured on an H100 with driver 580 (2026-11-23): to ask a primary context for its flags takes
// 0.04 us, as it does for the current context. To set the flag waits for all that the context is
// doing, kernels in any stream included; meanwhile other threads' copies and launches go on, but
// cuDevicePrimaryCtxGetState waits. It ends a capture that another thread has under way in global
// mode; to query or await the default stream does not.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "device/cuda/copy.h"
#include "device/cuda/driver.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {

class ProgramOrder {
 public:
  // As DeviceRuntime::order_behind_program: `owner` is the context of the buffer at hand, or null.
  // Thread-safe; the calling thread's current context stays.
  void order(const Driver& driver, Context owner) noexcept;

  // As DeviceRuntime::keep_in_order: by CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which no call of the
  // program clears, unlike the flag. For memory of cuMemAlloc alone: a mapping takes none, and what
  // lies in a pool changes hands while its block stays.
  static bool keep(const Driver& driver, const PointerInfo& memory) noexcept;

 private:
  static constexpr int kDevicesMost = 64;

  // A context that lacks the flag.
  struct Target {
    Device device = -1;         // of a primary context; -1: the program has made it
    Context context = nullptr;  // null: a primary one that nobody uses yet
    unsigned flags = 0;
  };
  struct Setting;  // under way on a thread of its own

  int device_count(const Driver& driver) noexcept;
  bool is_primary(Context context) const noexcept;
  bool find_unflagged(const Driver& driver, Context owner, Target& target) noexcept;
  void set_flags(const Driver& driver, Context owner) noexcept;
  bool set_flag(const Driver& driver, const Target& target) noexcept;
  void await_default_streams(const Driver& driver, Context owner) noexcept;

  std::atomic<int> device_count_{0};
  std::array<std::atomic<Context>, kDevicesMost> primaries_{};  // those in use that were seen
  std::atomic<bool> without_flag_{false};  // the driver takes none: default streams are awaited
  std::atomic<bool> setting_late_{false};  // so are they while this is true
  std::mutex mutex_;                       // guards what follows; one thread at a time sets flags
  std::shared_ptr<Setting> setting_;
};

}  // namespace accord::device::cuda
