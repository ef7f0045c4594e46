// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"

namespace accord::device::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

// Files that exist where the driver's kernel part is loaded: servers, containers, WSL, Jetson.
constexpr const char* kDeviceFiles[] = {"/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg",
                                        "/dev/nvhost-ctrl-gpu"};

bool device_file_exists() noexcept {
  for (const char* path : kDeviceFiles) {
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

bool find_functions(void* library, Driver& found) {
  const char* missing = nullptr;
#define CUDA_FUNCTION(member, symbol, parameters)                                   \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(library, #symbol)); \
  if (found.member == nullptr) missing = #symbol;
#include "device/cuda_driver.def"
#undef CUDA_FUNCTION
  if (missing != nullptr) {
    log::warn("cuda runtime is off: {} has no {} (a driver for CUDA 12 or later is needed)",
              kLibrary, missing);
  }
  return missing == nullptr;
}

const Driver* load() {
  // The handle is kept for good: the driver cannot be unloaded safely.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr && device_file_exists()) library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto* found = new Driver;
  if (find_functions(library, *found)) return found;
  delete found;
  return nullptr;
}

}  // namespace

const Driver* driver() noexcept {
  static const Driver* const found = load();
  return found;
}

Status status_of(const Driver& driver, Result result, const char* call) {
  if (result == Result::success) return Status();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.get_error_name(result, &name) != Result::success || name == nullptr) name = "error";
  if (driver.get_error_string(result, &text) != Result::success || text == nullptr) text = "";
  const StatusCode code =
      result == Result::out_of_memory ? StatusCode::no_memory : StatusCode::device_error;
  return Status(
      code, fmt::format("cuda {}: {} {} ({})", call, name, static_cast<unsigned>(result), text));
}

}  // namespace accord::device::cuda
