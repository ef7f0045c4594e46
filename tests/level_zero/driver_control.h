// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a test in the process of the test driver speaks with it, past the loader.
#pragma once

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "../stand_in_control.h"

namespace accord::test::level_zero {

// The last one that ZE_ENABLE_ALT_DRIVERS names is the driver.
inline std::string driver_path() {
  const char* names = std::getenv("ZE_ENABLE_ALT_DRIVERS");
  std::string path = names == nullptr ? "" : names;
  return path.erase(0, path.rfind(',') + 1);
}

class DriverControl : public StandInControl {
 public:
  DriverControl() : StandInControl({driver_path(), "accord_test_ze_", "level-zero-test-memory"}) {}
};

inline const std::vector<std::string> kFunctions = {
#define LEVEL_ZERO_FUNCTION(member, symbol) #symbol,
#include "../../src/device/level_zero/driver.def"
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
