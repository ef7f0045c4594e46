// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a test in the process of the stand-in for HIP speaks with it, as a program does and past its
// interface.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "../stand_in_control.h"
#include "device/cuda/driver.h"

namespace accord::test::hip {

class DriverControl : public StandInControl {
 public:
  using Result = device::cuda::Result;

  DriverControl() : StandInControl({"libamdhip64.so.6", "accord_test_hip_", "hip-test-memory"}) {}

  Result last_error() const { return find<Result()>("hipGetLastError")(); }
  void set_device(int device) const { (void)find<Result(int)>("hipSetDevice")(device); }
  // Both return early.
  Result copy_within(void* dst, const void* src, std::size_t size_bytes) const {
    return find<Result(void*, const void*, std::size_t, unsigned)>("hipMemcpy")(dst, src,
                                                                                size_bytes, 3);
  }
  Result fill(void* dst, int value, std::size_t size_bytes) const {
    return find<Result(void*, int, std::size_t)>("hipMemset")(dst, value, size_bytes);
  }
  int current_device() const {
    int device = -1;
    (void)find<Result(int*)>("hipGetDevice")(&device);
    return device;
  }
};

// All but those that only tell of errors.
inline const std::vector<std::string> kFunctions = {
#define HIP_TWIN(member, symbol, parameters) #symbol,
#define HIP_LIKE(member, symbol, parameters) #symbol,
#define HIP_OWN(member, symbol, parameters) #symbol,
#define HIP_TEXT(member, symbol)
#include "device/hip/driver.def"
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
