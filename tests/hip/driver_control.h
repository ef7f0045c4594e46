// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a test in the process of the stand-in for HIP speaks with it as a program does, and past its
// interface.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "device/cuda_driver.h"

namespace accord::test::hip {

// What a process could leak: what the library holds, descriptors, and mappings of memory.
struct Held {
  long objects = 0;
  long allocations = 0;
  long descriptors = 0;
  long mappings = 0;
  bool operator==(const Held&) const = default;
};

// The library must have been loaded by now.
class DriverControl {
 public:
  using Result = device::cuda::Result;

  DriverControl() : library_(::dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD)) {}

  bool found() const { return library_ != nullptr && find<void()>("accord_test_hip_fail"); }

  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }

  // As ACCORD_TEST_HIP_FAIL.
  void fail(const std::string& what) const {
    find<void(const char*)>("accord_test_hip_fail")(what.c_str());
  }
  Result last_error() const { return find<Result()>("hipGetLastError")(); }
  void set_device(int device) const { (void)find<Result(int)>("hipSetDevice")(device); }
  int current_device() const {
    int device = -1;
    (void)find<Result(int*)>("hipGetDevice")(&device);
    return device;
  }

  Held held() const {
    Held all;
    find<void(long*, long*)>("accord_test_hip_count")(&all.objects, &all.allocations);
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      ++all.descriptors;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("hip-test-memory") != std::string::npos) ++all.mappings;
    }
    return all;
  }

 private:
  void* library_;
};

// All but those that only tell of errors.
inline const std::vector<std::string> kFunctions = {
#define HIP_TWIN(member, symbol, parameters) #symbol,
#define HIP_LIKE(member, symbol, parameters) #symbol,
#define HIP_OWN(member, symbol, parameters) #symbol,
#define HIP_TEXT(member, symbol)
#include "device/hip_driver.def"
#undef HIP_TWIN
#undef HIP_LIKE
#undef HIP_OWN
#undef HIP_TEXT
};

// What these cannot release, or enter the device for, nobody can.
inline const std::set<std::string> kReleasing = {"hipFree",
                                                 "hipHostFree",
                                                 "hipHostUnregister",
                                                 "hipIpcCloseMemHandle",
                                                 "hipStreamDestroy",
                                                 "hipGraphDestroy",
                                                 "hipGraphExecDestroy",
                                                 "hipGetDevice",
                                                 "hipSetDevice",
                                                 "hipThreadExchangeStreamCaptureMode"};

}  // namespace accord::test::hip

namespace accord::test {
namespace driver = hip;  // for tests of any vendor's
}
