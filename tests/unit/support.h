// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the unit tests share: Status checks, child processes, memory that must not be touched.
#pragma once

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

#define EXPECT_OK(expression)                               \
  do {                                                      \
    const ::accord::Status status_seen = (expression);      \
    EXPECT_TRUE(status_seen.ok()) << status_seen.message(); \
  } while (false)

#define ASSERT_OK(expression)                               \
  do {                                                      \
    const ::accord::Status status_seen = (expression);      \
    ASSERT_TRUE(status_seen.ok()) << status_seen.message(); \
  } while (false)

#define EXPECT_CODE(expected, expression)                                                   \
  do {                                                                                      \
    const ::accord::Status status_seen = (expression);                                      \
    EXPECT_EQ(::accord::StatusCode::expected, status_seen.code()) << status_seen.message(); \
    EXPECT_FALSE(status_seen.message().empty());                                            \
  } while (false)

namespace accord::test {

// Runs `body` in a forked child and returns its exit status; -1 when it did not exit by itself.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline thread_local sigjmp_buf fault_return;

enum class Touch { read, write };

// Whether the CPU faults when it touches the byte.
inline bool faults(void* pointer, Touch touch) {
  struct sigaction action {};
  struct sigaction outer_segv {};
  struct sigaction outer_bus {};
  action.sa_handler = [](int) { siglongjmp(fault_return, 1); };
  sigaction(SIGSEGV, &action, &outer_segv);
  sigaction(SIGBUS, &action, &outer_bus);
  volatile bool faulted = false;
  if (sigsetjmp(fault_return, 1) == 0) {
    auto* byte = static_cast<volatile unsigned char*>(pointer);
    if (touch == Touch::write) {
      *byte = 1;
    } else {
      static_cast<void>(*byte);
    }
  } else {
    faulted = true;
  }
  sigaction(SIGSEGV, &outer_segv, nullptr);
  sigaction(SIGBUS, &outer_bus, nullptr);
  return faulted;
}

// Bytes that depend on a seed, so that data in the wrong place shows.
inline std::vector<unsigned char> pattern(std::size_t size_bytes, unsigned seed) {
  std::vector<unsigned char> bytes(size_bytes);
  unsigned state = seed * 2654435761U + 1;
  for (unsigned char& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return bytes;
}

}  // namespace accord::test
