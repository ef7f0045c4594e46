// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "device/open_library.h"

namespace accord::device::level_zero {
namespace {

constexpr const char* kLibrary = "libze_loader.so.1";
constexpr std::string_view kVendor = "0x8086";  // Intel's, as PCI numbers them

// Whether the kernel shows a GPU of the vendor.
bool gpu_exists() {
  constexpr const char* kDevices = "/sys/class/drm";
  DIR* directory = opendir(kDevices);
  if (directory == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(directory)) {
    if (!std::string_view(entry->d_name).starts_with("renderD")) continue;
    std::string vendor;
    std::ifstream(fmt::format("{}/{}/device/vendor", kDevices, entry->d_name)) >> vendor;
    found = found || vendor == kVendor;
  }
  closedir(directory);
  return found;
}

// The loader takes the drivers of this variable instead of those it knows: then there may be a
// device without such a GPU.
bool other_drivers_named() { return std::getenv("ZE_ENABLE_ALT_DRIVERS") != nullptr; }

bool find_functions(void* library, Driver& found, const char*& missing) {
  missing = nullptr;
#define LEVEL_ZERO_FUNCTION(member, symbol)                                         \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(library, #symbol)); \
  if (found.member == nullptr) missing = #symbol;
#include "device/level_zero/driver.def"
#undef LEVEL_ZERO_FUNCTION
  found.ipc_put_handle =
      reinterpret_cast<decltype(found.ipc_put_handle)>(dlsym(library, "zeMemPutIpcHandle"));
  return missing == nullptr;
}

// What was looked for once.
struct Found {
  const Driver* driver = nullptr;
  Status problem;
};

// The loader is kept for good: memory of it may be in use until the very end of the process.
Found load() {
  if (!other_drivers_named() && !gpu_exists() && access("/dev/dxg", F_OK) != 0) return {};
  void* library = open_library(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {nullptr,
            Status(StatusCode::unsupported,
                   fmt::format("level_zero: an Intel GPU, but {} does not load", kLibrary))};
  }
  auto* functions = new Driver;
  const char* missing = nullptr;
  if (find_functions(library, *functions, missing)) return {functions, Status()};
  delete functions;
  return {nullptr, Status(StatusCode::unsupported,
                          fmt::format("level_zero: {} has no {}", kLibrary, missing))};
}

const Found& found() noexcept {
  static const Found& once = *new Found(load());
  return once;
}

const char* name_of(ze_result_t result) {
#define ACCORD_NAME(name) \
  case name:              \
    return #name
  switch (result) {
    ACCORD_NAME(ZE_RESULT_NOT_READY);
    ACCORD_NAME(ZE_RESULT_ERROR_DEVICE_LOST);
    ACCORD_NAME(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    ACCORD_NAME(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    ACCORD_NAME(ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    ACCORD_NAME(ZE_RESULT_ERROR_MODULE_LINK_FAILURE);
    ACCORD_NAME(ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS);
    ACCORD_NAME(ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE);
    ACCORD_NAME(ZE_RESULT_ERROR_UNINITIALIZED);
    ACCORD_NAME(ZE_RESULT_ERROR_UNSUPPORTED_VERSION);
    ACCORD_NAME(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    ACCORD_NAME(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_SIZE);
    ACCORD_NAME(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    ACCORD_NAME(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    ACCORD_NAME(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_NATIVE_BINARY);
    ACCORD_NAME(ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
    ACCORD_NAME(ZE_RESULT_ERROR_OVERLAPPING_REGIONS);
    ACCORD_NAME(ZE_RESULT_ERROR_UNKNOWN);
    default:
      return "error";
  }
#undef ACCORD_NAME
}

}  // namespace

const Driver* driver() noexcept { return found().driver; }

const Status& driver_problem() noexcept { return found().problem; }

Status status_of(ze_result_t result, const char* call) {
  if (result == ZE_RESULT_SUCCESS) return Status();
  const bool no_memory = result == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY ||
                         result == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  return Status(
      no_memory ? StatusCode::no_memory : StatusCode::device_error,
      fmt::format("level_zero {}: {} {:#x}", call, name_of(result), static_cast<unsigned>(result)));
}

}  // namespace accord::device::level_zero
