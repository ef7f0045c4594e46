// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the tests of the CUDA runtime and their child processes (cuda_children.cpp) share.
#pragma once

#include <string>
#include <vector>

#include "cuda_program.h"
#include "device/cuda/driver.h"
#include "device/device_runtime.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& cuda_runtime();

}  // namespace accord::device

namespace accord::test {

using device::Copy;
using device::cuda_runtime;

inline const device::cuda::Driver& driver() { return *device::cuda::driver(); }

inline void* pointer_to(DevicePointer address) { return reinterpret_cast<void*>(address); }

inline Status copy_one(void* dst, const void* src, std::size_t size_bytes, int device = 0) {
  const Copy one{dst, src, size_bytes};
  return cuda_runtime().copy(device, {&one, 1});
}

inline std::vector<unsigned char> contents(const void* pointer, std::size_t size_bytes) {
  std::vector<unsigned char> bytes(size_bytes);
  EXPECT_OK(copy_one(bytes.data(), pointer, size_bytes));
  return bytes;
}

// The allocation that one process exports and another opens.
constexpr std::size_t kSharedBytes = 300000;
constexpr std::size_t kSharedOffset = 4444;

// ExportedMemory as an argument of a child process.
std::string text_of(const device::ExportedMemory& exported);

// Why there is nothing to test here, or null.
inline const char* nothing_to_test() {
  if (device::cuda::driver() == nullptr) return "no NVIDIA driver";
  if (cuda_runtime().device_count() == 0) return "no CUDA device";
  return nullptr;
}

// main() of a test program; 77 where there is nothing to test.
inline int run_cuda_tests(int argc, char** argv) {
  load_fake_driver();
  testing::InitGoogleTest(&argc, argv);
  const char* reason = nothing_to_test();
  const int result = RUN_ALL_TESTS();
  if (reason != nullptr) std::printf("skipped: %s\n", reason);
  constexpr int kSkipped = 77;
  return result == 0 && reason != nullptr ? kSkipped : result;
}

// Runs this program again with these arguments; returns its exit status, -1 when it crashed.
int run_child(std::vector<std::string> arguments);

// What the child process `name` does; it exits with what this returns: 0, or which check failed.
int cuda_child(const std::string& name, char** arguments);

// Of those the ones of cuda_resident_test.cpp.
int resident_child(const std::string& name);

}  // namespace accord::test
