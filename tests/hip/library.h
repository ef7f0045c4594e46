// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A stand-in for libamdhip64.so over host memory, loaded as AMD's is, so that the HIP runtime is
// tested without a GPU, in one process and between several. It is strict where HIP is, or may be:
// device memory cannot be touched by the CPU, streams and events are used with their device
// current, kernels reach other devices only where peers were enabled, the last error of a thread is
// kept. hipMemset and hipMemcpy within a device return before they have landed, which they do when
// somebody waits for the default stream or asks after it often. Streams work late
// (ACCORD_TEST_HIP_DELAY_US), each in a thread of its own. A kernel is known by its name, and done
// by the CPU. ACCORD_TEST_HIP_VERSION=5 has the numbers and answers of HIP 5; =7 keeps an error
// until it is asked after, where older ones keep the last result.
// ACCORD_TEST_HIP_REGISTERED=elsewhere: a device finds registered memory at another address. A
// mistake of the caller that a GPU would only show as wrong bytes ends the process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/hip/functions.h"

namespace accord::test::hip {

using device::cuda::Result;
constexpr auto kInvalidDevice = static_cast<Result>(101);
constexpr auto kNoBinary = static_cast<Result>(209);
constexpr auto kInvalidHandle = static_cast<Result>(400);
constexpr auto kNotFound = static_cast<Result>(500);
constexpr auto kIllegalAddress = static_cast<Result>(700);

// ACCORD_TEST_HIP_DEVICES, 2 where that is not set.
int device_count();

enum class Kind { host, device, managed };

struct Allocation {
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();

  Kind kind = Kind::device;
  int device = 0;
  bool imported = false;
  bool registered = false;     // the program's own pages
  std::byte* user = nullptr;   // what the program holds
  std::byte* alias = nullptr;  // where its bytes are
  std::size_t size_bytes = 0;
  std::size_t mapped_bytes = 0;
  int descriptor = -1;
  std::string file;
  unsigned id = 0;
};

using Work = std::function<void()>;

// Everything that the library holds.
struct State {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::map<std::byte*, std::shared_ptr<Allocation>> allocations;
  std::set<std::pair<int, int>> peers;  // the first may use memory of the second
  unsigned last_id = 0;
  long objects = 0;  // streams, events, graphs and modules
  long jobs = 0;     // on any stream
  // By device, what synchronous calls have left for its default stream, and how often that was
  // asked after since.
  std::map<int, std::vector<Work>> late;
  int late_polls = 0;
};
State& state();

// What each thread has.
extern thread_local int current_device;
extern thread_local Result last_error;

// ACCORD_TEST_HIP_VERSION, 6 where that is not set.
int version();
inline bool is_version_5() { return version() == 5; }

// Where a device finds what the host has at this address.
const void* address_on_device(const Allocation& allocation, const void* address);

// The allocation that the address is in, or null. With the state's mutex held.
std::shared_ptr<Allocation> find_allocation(const void* address);

// Where the bytes at an address are that the program knows: these of an allocation, which is then
// held, or plain host memory. With the state's mutex held.
std::byte* reach(const void* address, std::size_t size_bytes,
                 std::vector<std::shared_ptr<Allocation>>& held);

// Where the CPU finds what a kernel on the current device is given; null: it would fault. With the
// state's mutex held.
using Held = std::vector<std::shared_ptr<Allocation>>;
std::byte* address_in_kernel(const void* pointer, std::size_t size_bytes, Held& held);

// With the state's mutex held.
Result enqueue(device::cuda::Stream stream, Work work);

// What a device could not forgive.
[[noreturn]] void fail(const std::string& what);

// What this call is to fail with (ACCORD_TEST_HIP_FAIL, see library.cpp), else success.
Result injected(const char* function);

// The body of every function: fails where it is told to, and leaves its error for hipGetLastError.
template <class Body>
Result api(const char* function, const Body& body) {
  Result result = injected(function);
  if (result == Result::success) result = body();
  const bool is_error = result != Result::success && result != Result::not_ready;
  if (is_error || version() < 7) last_error = result;
  return result;
}

}  // namespace accord::test::hip
