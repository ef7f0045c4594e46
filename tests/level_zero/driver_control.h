// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a test in the process of the test driver speaks with it, past the loader.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace accord::test::level_zero {

// What a process could leak: what the driver holds, descriptors, and mappings of memory.
struct Held {
  long objects = 0;
  long allocations = 0;
  long descriptors = 0;
  long mappings = 0;
  bool operator==(const Held&) const = default;
};

class DriverControl {
 public:
  // The last one that ZE_ENABLE_ALT_DRIVERS names is the driver, which the loader has loaded by
  // now.
  DriverControl() {
    const char* names = std::getenv("ZE_ENABLE_ALT_DRIVERS");
    std::string path = names == nullptr ? "" : names;
    path.erase(0, path.rfind(',') + 1);
    library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (library_ == nullptr) return;
    fail_ = reinterpret_cast<decltype(fail_)>(::dlsym(library_, "accord_test_ze_fail"));
    count_ = reinterpret_cast<decltype(count_)>(::dlsym(library_, "accord_test_ze_count"));
  }

  bool found() const { return fail_ != nullptr && count_ != nullptr; }

  // As ACCORD_TEST_ZE_FAIL.
  void fail(const std::string& what) const { fail_(what.c_str()); }

  Held held() const {
    Held all;
    count_(&all.objects, &all.allocations);
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      ++all.descriptors;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("level-zero-test-memory") != std::string::npos) ++all.mappings;
    }
    return all;
  }

 private:
  void* library_ = nullptr;
  void (*fail_)(const char*) = nullptr;
  void (*count_)(long*, long*) = nullptr;
};

inline const std::vector<std::string> kFunctions = {
#define LEVEL_ZERO_FUNCTION(member, symbol) #symbol,
#include "../../src/device/level_zero_driver.def"
#undef LEVEL_ZERO_FUNCTION
};

// What these cannot release, nobody can.
inline const std::set<std::string> kReleasing = {
    "zeMemFree",          "zeMemCloseIpcHandle", "zeCommandQueueDestroy", "zeCommandListDestroy",
    "zeEventPoolDestroy", "zeEventDestroy",      "zeFenceDestroy",        "zeKernelDestroy"};

}  // namespace accord::test::level_zero

namespace accord::test {
namespace driver = level_zero;  // for tests of any vendor's
}
