// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A vendor's library that the program may load at any time, or never: it is taken where it is
// loaded, and loaded only for who asks for it, since it starts threads or takes devices. Called by
// the drivers of such vendors (hip/driver.cpp, synapse/driver.cpp). Thread-safe.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>

#include "base/status.h"
#include "device/open_library.h"

namespace accord::device {

// How many libraries this process has ever loaded; asking takes less than looking for one.
inline unsigned long long libraries_loaded() noexcept {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;  // the same for all
      },
      &count);
  return count;
}

// `Api` is what is made of the library, once and for good: it is never unloaded. Objects of this
// class are never destroyed, since they are asked until the end of the process.
template <class Api>
class LateLibrary {
 public:
  struct Terms {
    std::span<const char* const> names;  // the first that is there counts
    bool (*is_asked_for)() noexcept;     // by ACCORD_RUNTIME
    bool (*has_device)() noexcept;       // whether the machine seems to have a device for it
    Status (*make)(void* library, const char* name, const Api*& api);
    const char* absence;  // what is amiss where there should be one and none loads
  };
  explicit LateLibrary(const Terms& terms) : terms_(terms) {}
  LateLibrary(const LateLibrary&) = delete;
  LateLibrary& operator=(const LateLibrary&) = delete;

  // Where this process has loaded it or asks for it; else null.
  const Api* find() noexcept {
    if (const Api* known = api_.load(std::memory_order_acquire)) return known;
    const unsigned long long loaded = libraries_loaded();
    if (libraries_seen_.load(std::memory_order_relaxed) == loaded) return nullptr;
    const std::lock_guard lock(mutex_);
    take(terms_.is_asked_for() ? RTLD_NOW | RTLD_LOCAL : RTLD_NOW | RTLD_NOLOAD);
    // Loading may have loaded others, too, though it failed.
    libraries_seen_.store(std::max(loaded, libraries_loaded()), std::memory_order_relaxed);
    return api_.load(std::memory_order_relaxed);
  }

  // Loads it where the machine has a device for it, too.
  const Api* open() noexcept {
    if (const Api* known = find()) return known;
    if (!terms_.has_device() && !terms_.is_asked_for()) return nullptr;
    const std::lock_guard lock(mutex_);
    take(RTLD_NOW | RTLD_LOCAL);
    const Api* const found = api_.load(std::memory_order_relaxed);
    if (found == nullptr) absence_ = Status(StatusCode::unsupported, terms_.absence);
    return found;
  }

  // Why open() has found none; ok where there is nothing to be found.
  Status problem() {
    const std::lock_guard lock(mutex_);
    return failure_.ok() ? absence_ : failure_;
  }

 private:
  // With the mutex held.
  void take(int flags) {
    if (api_.load(std::memory_order_relaxed) != nullptr || !failure_.ok()) return;
    for (const char* name : terms_.names) {
      void* const library = open_library(name, flags);
      if (library == nullptr) continue;
      const Api* made = nullptr;
      failure_ = terms_.make(library, name, made);
      if (failure_.ok()) api_.store(made, std::memory_order_release);
      return;
    }
  }

  const Terms terms_;
  std::atomic<const Api*> api_{nullptr};
  std::atomic<unsigned long long> libraries_seen_{0};
  std::mutex mutex_;  // guards what follows
  Status failure_;    // of a library that is there; for good
  Status absence_;    // of one that was asked for: the program may bring its own later
};

}  // namespace accord::device
