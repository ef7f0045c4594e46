// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A process that can create no more threads, for as long as a NoThreads lives. In one source of a
// program.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace accord::test {

class NoThreads {
 public:
  NoThreads() { refused = true; }
  ~NoThreads() { refused = false; }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

  static inline std::atomic<bool> refused{false};
};

// Whether this thread takes such a signal.
inline bool takes_signal(int signal) {
  sigset_t masked;
  return ::pthread_sigmask(SIG_SETMASK, nullptr, &masked) == 0 && sigismember(&masked, signal) == 0;
}

}  // namespace accord::test

// Instead of the C library's, which it calls.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) noexcept {
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (accord::test::NoThreads::refused) return EAGAIN;
  return create(thread, attributes, body, argument);
}
