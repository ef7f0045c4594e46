// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/hip/driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/config.h"
#include "device/hip/functions.h"
#include "device/late_library.h"

#ifdef ACCORD_HIP_KERNELS
extern "C" const unsigned char accord_hip_kernels[];  // hip/kernels.S
extern "C" const unsigned char accord_hip_pack_kernels[];
extern "C" const unsigned char accord_hip_inbox_kernels[];
#endif

namespace accord::device::hip {
namespace {

#ifdef ACCORD_HIP_KERNELS
constexpr cuda::KernelImages kImages{.reductions = accord_hip_kernels,
                                     .packing = accord_hip_pack_kernels,
                                     .launched_inbox = accord_hip_inbox_kernels};
#else
constexpr cuda::KernelImages kImages{};
#endif

constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "libamdhip64.so"};

// Whether the kernel driver shows a GPU that this process may open: CPUs are nodes without an id.
bool find_gpu() {
  constexpr const char* kNodes = "/sys/class/kfd/kfd/topology/nodes";
  if (access("/dev/kfd", F_OK) != 0) return false;
  DIR* directory = opendir(kNodes);
  if (directory == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(directory)) {
    unsigned long id = 0;
    std::ifstream(fmt::format("{}/{}/gpu_id", kNodes, entry->d_name)) >> id;
    found = found || id != 0;
  }
  closedir(directory);
  return found;
}

// Whether the library lies somewhere it may be loaded from: many a machine has a GPU of AMD's
// beside its display and no HIP. To load it takes much longer.
bool find_library() {
  std::vector<std::filesystem::path> folders = {"/usr/lib", "/usr/lib64", "/usr/local/lib",
                                                "/usr/lib/x86_64-linux-gnu"};
  if (const char* const path = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream named(path);
    for (std::string folder; std::getline(named, folder, ':');) folders.emplace_back(folder);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/opt", error)) {
    if (entry.path().filename().string().starts_with("rocm"))
      folders.push_back(entry.path() / "lib");
  }
  return std::ranges::any_of(folders, [](const std::filesystem::path& folder) {
    return std::ranges::any_of(kLibraries, [&](const char* name) {
      std::error_code ignored;
      return std::filesystem::exists(folder / name, ignored);
    });
  });
}

bool asked_for() noexcept { return config().runtime == "hip"; }

const char* own_symbol(const char* symbol) noexcept {
#define HIP_TWIN(member, own, parameters) \
  if (std::strcmp(symbol, cuda::symbol::member) == 0) return #own;
#define HIP_LIKE(member, own, parameters) HIP_TWIN(member, own, parameters)
#define HIP_OWN(member, own, parameters)
#define HIP_TEXT(member, own)
#include "device/hip/driver.def"
#undef HIP_TWIN
#undef HIP_LIKE
#undef HIP_OWN
#undef HIP_TEXT
  return symbol;
}

Status find_functions(void* library, const char* name) {
  const char* missing = nullptr;
  Functions found;
  const auto find = [&](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) missing = symbol;
  };
#define HIP_TWIN(member, symbol, parameters) find(found.member, #symbol);
#define HIP_LIKE(member, symbol, parameters) find(found.member, #symbol);
#define HIP_OWN(member, symbol, parameters) find(found.member, #symbol);
#define HIP_TEXT(member, symbol) find(found.member, #symbol);
#include "device/hip/driver.def"
#undef HIP_TWIN
#undef HIP_LIKE
#undef HIP_OWN
#undef HIP_TEXT
  if (missing != nullptr) {
    return Status(StatusCode::unsupported,
                  fmt::format("hip: {} has no {} (ROCm 5.2 or later is needed)", name, missing));
  }
  functions() = found;
  return Status();
}

Status make(void* library, const char* name, const cuda::Driver*& driver) {
  ACCORD_TRY(find_functions(library, name));
  auto* const made = new cuda::Driver(make_driver());
  made->runtime = "hip";
  made->own_symbol = own_symbol;
  made->images = kImages;
  driver = made;
  return Status();
}

LateLibrary<cuda::Driver>& library() noexcept {
  static LateLibrary<cuda::Driver>& only = *new LateLibrary<cuda::Driver>(
      {.names = kLibraries,
       .is_asked_for = asked_for,
       .has_device = device_exists,
       .make = make,
       .absence = "hip: an AMD GPU or ACCORD_RUNTIME=hip, but no libamdhip64 that loads"});
  return only;
}

}  // namespace

const cuda::Driver* driver() noexcept { return library().find(); }
const cuda::Driver* open_driver() noexcept { return library().open(); }

bool device_exists() noexcept {
  static const bool found = find_gpu() && find_library();
  return found;
}

// A library that comes later is of use only where there is a GPU.
bool may_be_used() noexcept {
  static const bool may = device_exists() || asked_for() || driver() != nullptr;
  return may;
}

bool device_is_visible() noexcept {
  for (const char* name : {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    const char* visible = std::getenv(name);
    if (visible != nullptr && (*visible == '\0' || *visible == '-')) return false;
  }
  return device_exists() || (asked_for() && driver() != nullptr);
}

Status problem() {
  const cuda::Driver* const found = open_driver();
  if (found == nullptr) return library().problem();
  if (!device_is_visible()) return Status();
  int count = 0;
  ACCORD_TRY(cuda::status_of(*found, found->init(0), cuda::symbol::init));
  return cuda::status_of(*found, found->device_get_count(&count), cuda::symbol::device_get_count);
}

}  // namespace accord::device::hip
