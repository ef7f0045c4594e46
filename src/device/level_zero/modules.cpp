// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/modules.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "device/level_zero/kernels.h"

namespace accord::device::level_zero {
namespace {

struct Image {
  const char* name;
  const std::uint8_t* spirv;
  std::size_t size_bytes;
};

}  // namespace
}  // namespace accord::device::level_zero

#ifdef ACCORD_LEVEL_ZERO_KERNELS
// cmake/AccordSpirv.cmake; the last one has no name.
extern "C" const accord::device::level_zero::Image accord_level_zero_modules[];
#endif

namespace accord::device::level_zero {
namespace {

const Image* find_image([[maybe_unused]] std::string_view name) {
#ifdef ACCORD_LEVEL_ZERO_KERNELS
  for (const Image* image = accord_level_zero_modules; image->name != nullptr; ++image) {
    if (image->name == name) return image;
  }
#endif
  return nullptr;
}

// That a driver does not take our kernels is no error of the device: there are other ways. Drivers
// give many codes for that, also such as the interface does not list.
Status refusal_or(ze_result_t result, const char* call) {
  Status status = status_of(result, call);
  const bool other = status.ok() || status.code() == StatusCode::no_memory ||
                     result == ZE_RESULT_ERROR_DEVICE_LOST;
  return other ? status : Status(StatusCode::unsupported, status.message());
}

Status make_module(const Driver& driver, const Device& device, const Image& image,
                   ze_module_handle_t& module) {
  ze_module_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
  description.format = ZE_MODULE_FORMAT_IL_SPIRV;
  description.inputSize = image.size_bytes;
  description.pInputModule = image.spirv;
  return refusal_or(
      driver.module_create(device.context, device.handle, &description, &module, nullptr),
      symbol::module_create);
}

// Kernels find their memory by addresses in other memory, which the driver has to be told.
Status prepare(const Driver& driver, ze_kernel_handle_t kernel) {
  ACCORD_TRY(refusal_or(driver.kernel_set_group_size(kernel, kKernelThreads, 1, 1),
                        symbol::kernel_set_group_size));
  constexpr ze_kernel_indirect_access_flags_t kAll = ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST |
                                                     ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE |
                                                     ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
  return refusal_or(driver.kernel_set_indirect_access(kernel, kAll),
                    symbol::kernel_set_indirect_access);
}

Status make_kernel(const Driver& driver, ze_module_handle_t module, const std::string& name,
                   ze_kernel_handle_t& kernel) {
  ze_kernel_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
  description.pKernelName = name.c_str();
  ACCORD_TRY(
      refusal_or(driver.kernel_create(module, &description, &kernel), symbol::kernel_create));
  Status status = prepare(driver, kernel);
  if (!status.ok()) driver.kernel_destroy(kernel);
  return status;
}

struct Module {
  ze_module_handle_t handle = nullptr;
  Status refusal;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

// What one device has of our kernels.
struct Loaded {
  std::optional<bool> reduces;
  std::map<std::string, Module> modules;
};

// Lives for good: at exit the driver may be gone before us.
struct Known {
  std::mutex mutex;
  std::map<ze_device_handle_t, Loaded> devices;
};

Known& known_modules() {
  static Known& all = *new Known;
  return all;
}

Status load(const Driver& driver, const Device& device, const std::string& name, Module& module) {
  if (module.handle != nullptr) return Status();
  ACCORD_TRY(module.refusal);
  const Image* const image = find_image(name);
  if (image == nullptr) {
    return Status(StatusCode::unsupported,
                  "level_zero kernels: the library was built without llvm-spirv");
  }
  Status status = make_module(driver, device, *image, module.handle);
  if (!status.ok()) module.handle = nullptr;
  if (status.code() == StatusCode::unsupported) {
    module.refusal = status;
    log::info("no {} kernels on this device: {}", name, status.message());
  }
  return status;
}

}  // namespace

bool has_kernels(const Device& device) {
  return find_image("pack") != nullptr && device.compute.queues != 0;
}

// Who reduces on a device reduces all elements there. The module of bytes, which whoever tries
// kernels out takes, shows whether the driver takes ours.
bool has_reductions(const Driver& driver, const Device& device) {
  if (!has_kernels(device)) return false;
  const std::lock_guard lock(known_modules().mutex);
  Loaded& loaded = known_modules().devices[device.handle];
  if (loaded.reduces.has_value()) return *loaded.reduces;
  ze_device_module_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
  if (driver.device_get_module_properties(device.handle, &properties) != ZE_RESULT_SUCCESS)
    return false;
  const Status status = load(driver, device, "uint8", loaded.modules["uint8"]);
  if (!status.ok() && status.code() != StatusCode::unsupported) return false;
  loaded.reduces = status.ok() && (properties.flags & ZE_DEVICE_MODULE_FLAG_FP64) != 0;
  return *loaded.reduces;
}

Status has_inboxes(const Driver& driver, const Device& device, bool& runs) {
  runs = false;
  if (!has_kernels(device)) return Status();
  ze_device_module_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
  ACCORD_TRY(status_of(driver.device_get_module_properties(device.handle, &properties),
                       symbol::device_get_module_properties));
  runs = (properties.flags & ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS) != 0;
  return Status();
}

Status find_kernel(const Driver& driver, const Device& device, const std::string& module,
                   const std::string& name, Kernel*& kernel) {
  const std::lock_guard lock(known_modules().mutex);
  Module& found = known_modules().devices[device.handle].modules[module];
  ACCORD_TRY(load(driver, device, module, found));
  std::unique_ptr<Kernel>& entry = found.kernels[name];
  if (entry == nullptr) {
    auto made = std::make_unique<Kernel>();
    ACCORD_TRY(make_kernel(driver, found.handle, name, made->handle));
    entry = std::move(made);
  }
  kernel = entry.get();
  return Status();
}

Status check_reach(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                   const void* first, const void* last) {
  PointerInfo info;
  if (!runtime.classify(first, info)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("level_zero kernel: {} is no memory of this runtime", first));
  }
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(last) -
                                               static_cast<const std::byte*>(info.base));
  if (info.context != device.context || offset >= info.size_bytes) {
    return Status(StatusCode::unsupported,
                  fmt::format("level_zero kernel: not all at {} is in reach", first));
  }
  if (info.kind != MemoryKind::device || info.device == index) return Status();
  // Another device's is mapped to this one when it is made resident there.
  const Device& owner = devices(driver).all[static_cast<std::size_t>(info.device)];
  ze_bool_t access = 0;
  ACCORD_TRY(status_of(driver.device_can_access_peer(device.handle, owner.handle, &access),
                       symbol::device_can_access_peer));
  if (access == 0) {
    return Status(StatusCode::unsupported,
                  fmt::format("level_zero kernel: {} is out of this device's reach", first));
  }
  return status_of(
      driver.context_make_resident(device.context, device.handle, info.base, info.size_bytes),
      symbol::context_make_resident);
}

}  // namespace accord::device::level_zero
