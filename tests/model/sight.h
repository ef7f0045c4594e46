// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a thread sanitizer sees of the modelled world. The ranks are threads of one process here,
// and a lock of the fake MPI or of a fake device, which no real job has, would order everything
// that they do: no missing acquire or release of the library could show. So what the fakes keep for
// themselves is hidden, and they say which of their calls order what: a message what its sender has
// done before what its receiver does after it.
#pragma once

#include <cstddef>
#include <mutex>

#ifdef __SANITIZE_THREAD__
#include <sched.h>

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void __tsan_acquire(void* place);
void __tsan_release(void* place);
void __tsan_read_range(void* memory, unsigned long size_bytes);
void __tsan_write_range(void* memory, unsigned long size_bytes);
}
#endif

namespace accord::model {

#ifdef __SANITIZE_THREAD__

namespace detail {
inline thread_local int hidden_depth = 0;

inline void look_away() {
  ++hidden_depth;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
inline void look_again() {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  --hidden_depth;
}
}  // namespace detail

// Nothing that the thread does is seen.
class Hidden {
 public:
  Hidden() { detail::look_away(); }
  ~Hidden() { detail::look_again(); }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
};

// Inside of that: what touches memory of the library or of the program.
class Seen {
 public:
  Seen() : depth_(detail::hidden_depth) {
    for (int level = 0; level < depth_; ++level) detail::look_again();
  }
  ~Seen() {
    for (int level = 0; level < depth_; ++level) detail::look_away();
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

 private:
  const int depth_;
};

// Orders what a thread has done before `passes_on` before what one does after `takes_over` of the
// same place.
inline void passes_on(void* place) {
  const Seen seen;
  __tsan_release(place);
}
inline void takes_over(void* place) {
  const Seen seen;
  __tsan_acquire(place);
}
inline void note_read(const void* memory, std::size_t size_bytes) {
  const Seen seen;
  __tsan_read_range(const_cast<void*>(memory), size_bytes);
}
inline void note_write(void* memory, std::size_t size_bytes) {
  const Seen seen;
  __tsan_write_range(memory, size_bytes);
}

// The sanitizer does not know it for a lock.
class HiddenMutex {
 public:
  __attribute__((no_sanitize("thread"), noinline)) void lock() {
    while (__atomic_exchange_n(&held_, true, __ATOMIC_ACQUIRE)) ::sched_yield();
  }
  __attribute__((no_sanitize("thread"), noinline)) void unlock() {
    __atomic_store_n(&held_, false, __ATOMIC_RELEASE);
  }

 private:
  bool held_ = false;
};

#else

namespace detail {
inline void look_away() {}
inline void look_again() {}
}  // namespace detail

struct Hidden {
  Hidden() {}
};
struct Seen {
  Seen() {}
};
inline void passes_on(void*) {}
inline void takes_over(void*) {}
inline void note_read(const void*, std::size_t) {}
inline void note_write(void*, std::size_t) {}
using HiddenMutex = std::mutex;

#endif

// Holds the lock, and nothing is seen meanwhile. What was done while it was held before for the
// same `place` comes before; null: no order.
class HiddenLock {
 public:
  explicit HiddenLock(HiddenMutex& mutex, void* place = nullptr) : lock_(mutex), place_(place) {
    if (place_ != nullptr) takes_over(place_);
    detail::look_away();
  }
  ~HiddenLock() {
    if (lock_.owns_lock()) unlock();
  }
  HiddenLock(HiddenLock&&) = default;
  HiddenLock& operator=(HiddenLock&&) = delete;

  void unlock() {
    detail::look_again();
    if (place_ != nullptr) passes_on(place_);
    lock_.unlock();
  }

 private:
  std::unique_lock<HiddenMutex> lock_;
  void* place_;
};

}  // namespace accord::model
