// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/synapse/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/config.h"
#include "device/late_library.h"

namespace accord::device::synapse {
namespace {

constexpr const char* kLibraries[] = {"libSynapse.so"};
constexpr std::string_view kVendor = "0x1da3";  // Habana's, as PCI numbers them

// Kernels of today have accelerators in a class of their own; the vendor's older ones had another.
bool find_device() {
  std::error_code error;
  if (std::filesystem::directory_iterator("/sys/class/habanalabs", error) !=
      std::filesystem::directory_iterator())
    return true;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/accel", error)) {
    std::string vendor;
    std::ifstream(entry.path() / "device" / "vendor") >> vendor;
    if (vendor == kVendor) return true;
  }
  return false;
}

bool asked_for() noexcept { return config().runtime == "synapse"; }

Status make(void* library, const char* name, const Driver*& driver) {
  auto found = std::make_unique<Driver>();
  const char* missing = nullptr;
#define SYNAPSE_FUNCTION(member, symbol, parameters)                                  \
  found->member = reinterpret_cast<decltype(found->member)>(dlsym(library, #symbol)); \
  if (found->member == nullptr) missing = #symbol;
#include "device/synapse/driver.def"
#undef SYNAPSE_FUNCTION
  if (missing != nullptr)
    return Status(StatusCode::unsupported, fmt::format("synapse: {} has no {}", name, missing));
  driver = found.release();
  return Status();
}

LateLibrary<Driver>& library() noexcept {
  static LateLibrary<Driver>& only = *new LateLibrary<Driver>(
      {.names = kLibraries,
       .is_asked_for = asked_for,
       .has_device = device_exists,
       .make = make,
       .absence = "synapse: a Gaudi or ACCORD_RUNTIME=synapse, but no libSynapse.so that loads"});
  return only;
}

}  // namespace

const Driver* driver() noexcept { return library().find(); }
const Driver* open_driver() noexcept { return library().open(); }

bool device_exists() noexcept {
  static const bool found = find_device();
  return found;
}

// A library that comes later is of use only where there is a device.
bool may_be_used() noexcept {
  static const bool may = device_exists() || asked_for() || driver() != nullptr;
  return may;
}

Status driver_problem() { return open_driver() == nullptr ? library().problem() : Status(); }

Status status_of(Result result, const char* call) {
  if (result == Result::success) return Status();
  const bool no_memory = result == Result::out_of_host_memory ||
                         result == Result::out_of_device_memory ||
                         result == Result::failed_to_allocate;
  return Status(no_memory ? StatusCode::no_memory : StatusCode::device_error,
                fmt::format("synapse {}: status {}", call, static_cast<unsigned>(result)));
}

}  // namespace accord::device::synapse
