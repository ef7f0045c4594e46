// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "device/open_library.h"

#ifdef ACCORD_CUDA_KERNELS
extern "C" const unsigned char accord_cuda_kernels[];  // cuda/kernels.S
extern "C" const unsigned char accord_cuda_pack_kernels[];
extern "C" const unsigned char accord_cuda_inbox_kernel[];
extern "C" const unsigned char accord_cuda_partition_kernels[];
#endif

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

#ifdef ACCORD_CUDA_KERNELS
constexpr KernelImages kImages{.reductions = accord_cuda_kernels,
                               .packing = accord_cuda_pack_kernels,
                               .inbox = accord_cuda_inbox_kernel,
                               .partitions = accord_cuda_partition_kernels};
#else
constexpr KernelImages kImages{};
#endif

// Whether an entry of the directory is `prefix` and a number (an empty prefix: any entry).
bool has_entry(const char* path, std::string_view prefix) noexcept {
  DIR* directory = opendir(path);
  if (directory == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.size() <= prefix.size() || !name.starts_with(prefix) || name[0] == '.') continue;
    found = found || prefix.empty() ||
            std::isdigit(static_cast<unsigned char>(name[prefix.size()])) != 0;
  }
  closedir(directory);
  return found;
}

// Whether CUDA_VISIBLE_DEVICES hides all devices: the list ends at its first invalid entry.
bool all_devices_hidden() noexcept {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return false;
  return *visible == '\0' || *visible == '-' || std::strcmp(visible, "NoDevFiles") == 0;
}

Status find_functions(void* library, Driver& found) {
  const char* missing = nullptr;
#define CUDA_FUNCTION_LATER(member, symbol, parameters)                             \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(library, #symbol)); \
  if (found.member == nullptr) leave_out(found.member);
#define CUDA_FUNCTION(member, symbol, parameters)                                   \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(library, #symbol)); \
  if (found.member == nullptr) missing = #symbol;
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION
  if (missing == nullptr) return Status();
  Status problem(StatusCode::unsupported,
                 fmt::format("cuda: {} has no {} (a driver for CUDA 12 or later is needed)",
                             kLibrary, missing));
  log::warn("{}", problem.message());
  return problem;
}

// What was looked for once.
struct Found {
  const Driver* driver = nullptr;
  Status problem;
};

Found load() {
  // The handle is kept for good: the driver cannot be unloaded safely.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr && device_file_exists())
    library = open_library(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  auto made = std::make_unique<Driver>();
  made->images = kImages;
  Status problem = find_functions(library, *made);
  return {problem.ok() ? made.release() : nullptr, std::move(problem)};
}

const Found& found() noexcept {
  static const Found& once = *new Found(load());
  return once;
}

}  // namespace

const Driver* driver() noexcept { return found().driver; }

Status problem() {
  if (driver() == nullptr) return found().problem;
  const Result started = driver()->init(0);
  return started == Result::no_device ? Status() : status_of(*driver(), started, symbol::init);
}

bool device_exists() noexcept {
  return has_entry("/proc/driver/nvidia/gpus", "") || has_entry("/dev", "nvidia") ||
         access("/dev/dxg", F_OK) == 0 || access("/dev/nvhost-ctrl-gpu", F_OK) == 0;
}

bool device_is_visible() noexcept { return !all_devices_hidden() && device_exists(); }

Status status_of(const Driver& driver, Result result, const char* call) {
  if (result == Result::success) return Status();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.get_error_name(result, &name) != Result::success || name == nullptr) name = "error";
  if (driver.get_error_string(result, &text) != Result::success || text == nullptr) text = "";
  const StatusCode code =
      result == Result::out_of_memory ? StatusCode::no_memory : StatusCode::device_error;
  const char* own = driver.own_symbol != nullptr ? driver.own_symbol(call) : call;
  return Status(code, fmt::format("{} {}: {} {} ({})", driver.runtime, own, name,
                                  static_cast<unsigned>(result), text));
}

}  // namespace accord::device::cuda
