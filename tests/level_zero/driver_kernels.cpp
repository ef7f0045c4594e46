// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Modules and kernels of the test driver. A module must be SPIR-V that has the kernels as entry
// points. What runs is either that, by a library of OpenCL (ACCORD_TEST_ZE_OPENCL names its file),
// or the same source compiled for the CPU, which needs nothing.
#include <cstring>
#include <set>

#include "driver.h"
#include "driver_kernels_cpu.h"
#include "driver_opencl.h"

namespace accord::test::level_zero {
namespace {

struct Module : Object {
  Module() : Object(Kind::module) {}
  Device* device = nullptr;
  std::set<std::string> entry_points;
  std::shared_ptr<OpenclProgram> program;  // null: the CPU's own form
};

struct Kernel : Object {
  Kernel() : Object(Kind::kernel) {}
  Module* module = nullptr;
  Code code;
  std::uint32_t group_size = 0;
  ze_kernel_indirect_access_flags_t access = 0;
  void* argument = nullptr;
};

constexpr std::uint32_t kMagic = 0x07230203;
constexpr std::uint32_t kHeaderWords = 5;
constexpr std::uint32_t kOpEntryPoint = 15;
constexpr std::uint32_t kOpExecutionMode = 16;
constexpr std::uint32_t kContractionOff = 31;
constexpr std::uint32_t kKernelModel = 6;

// The instructions of a module one after the other; false where they are none. Each of its kernels
// must keep the compiler from joining a product and a sum.
bool read_spirv(const ze_module_desc_t& description, std::set<std::string>& entry_points) {
  std::vector<std::uint32_t> words(description.inputSize / sizeof(std::uint32_t));
  if (words.size() <= kHeaderWords || description.inputSize % sizeof(std::uint32_t) != 0)
    return false;
  std::memcpy(words.data(), description.pInputModule, description.inputSize);
  if (words[0] != kMagic) return false;
  std::size_t exact = 0;
  for (std::size_t at = kHeaderWords; at < words.size();) {
    const std::uint32_t length = words[at] >> 16;
    const std::uint32_t operation = words[at] & 0xffff;
    if (length == 0 || at + length > words.size()) return false;
    if (operation == kOpEntryPoint && length > 3 && words[at + 1] == kKernelModel)
      entry_points.insert(reinterpret_cast<const char*>(&words[at + 3]));
    if (operation == kOpExecutionMode && words[at + 2] == kContractionOff) ++exact;
    at += length;
  }
  return !entry_points.empty() && exact == entry_points.size();
}

ze_result_t module_create(ze_context_handle_t, ze_device_handle_t device,
                          const ze_module_desc_t* description, ze_module_handle_t* handle,
                          ze_module_build_log_handle_t* log) {
  if (log != nullptr) *log = nullptr;
  if (description->stype != ZE_STRUCTURE_TYPE_MODULE_DESC ||
      description->format != ZE_MODULE_FORMAT_IL_SPIRV) {
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  auto made = std::make_unique<Module>();
  if (is_without("spirv") || !read_spirv(*description, made->entry_points))
    return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  if (opencl_is_asked_for())
    made->program = build_program(description->pInputModule, description->inputSize);
  {
    const std::lock_guard lock(state().mutex);
    made->device = find<Device>(device, Object::Kind::device);
  }
  if (made->device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  *handle = static_cast<ze_module_handle_t>(add(std::move(made)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t module_destroy(ze_module_handle_t module) {
  return destroy(module, Object::Kind::module);
}

ze_result_t kernel_create(ze_module_handle_t handle, const ze_kernel_desc_t* description,
                          ze_kernel_handle_t* kernel) {
  if (description->stype != ZE_STRUCTURE_TYPE_KERNEL_DESC) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  auto made = std::make_unique<Kernel>();
  {
    const std::lock_guard lock(state().mutex);
    made->module = find<Module>(handle, Object::Kind::module);
    if (made->module == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!made->module->entry_points.contains(description->pKernelName))
      return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    ++made->module->users;
  }
  if (made->module->program != nullptr) {
    made->code.opencl = make_kernel(*made->module->program, description->pKernelName);
  } else {
    made->code.on_cpu = kernel_on_cpu(description->pKernelName);
    if (made->code.on_cpu == nullptr) fail("a kernel that was not compiled for the CPU");
  }
  *kernel = static_cast<ze_kernel_handle_t>(add(std::move(made)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t kernel_destroy(ze_kernel_handle_t handle) {
  {
    const std::lock_guard lock(state().mutex);
    auto* const kernel = find<Kernel>(handle, Object::Kind::kernel);
    if (kernel != nullptr) --kernel->module->users;
  }
  return destroy(handle, Object::Kind::kernel);
}

template <class Change>
ze_result_t change(ze_kernel_handle_t handle, const Change& apply) {
  const std::lock_guard lock(state().mutex);
  auto* const kernel = find<Kernel>(handle, Object::Kind::kernel);
  if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  apply(*kernel);
  return ZE_RESULT_SUCCESS;
}

ze_result_t kernel_set_group_size(ze_kernel_handle_t handle, std::uint32_t x, std::uint32_t y,
                                  std::uint32_t z) {
  if (x == 0 || x > 1024 || y != 1 || z != 1) return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
  return change(handle, [&](Kernel& kernel) { kernel.group_size = x; });
}

ze_result_t kernel_set_access(ze_kernel_handle_t handle, ze_kernel_indirect_access_flags_t flags) {
  return change(handle, [&](Kernel& kernel) { kernel.access = flags; });
}

// Each kernel has one argument, an address.
ze_result_t kernel_set_argument(ze_kernel_handle_t handle, std::uint32_t index,
                                std::size_t size_bytes, const void* value) {
  if (index != 0) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
  if (size_bytes != sizeof(void*)) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
  return change(handle, [&](Kernel& kernel) {
    std::memcpy(&kernel.argument, value, sizeof kernel.argument);
  });
}

}  // namespace

// The argument is used up: the kernel is some other launch's from now on.
ze_result_t make_launch(ze_kernel_handle_t handle, const Device& device,
                        const ze_group_count_t& groups, Launch& launch) {
  auto* const kernel = find<Kernel>(handle, Object::Kind::kernel);
  if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (kernel->module->device != &device) fail("a kernel of another device");
  if (kernel->group_size == 0 || kernel->argument == nullptr) fail("a kernel that is not prepared");
  if (groups.groupCountX == 0 || groups.groupCountY != 1 || groups.groupCountZ != 1)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  launch = {.device = &device,
            .access = kernel->access,
            .code = &kernel->code,
            .groups = groups.groupCountX,
            .group_size = kernel->group_size,
            .argument = kernel->argument};
  kernel->argument = nullptr;
  return ZE_RESULT_SUCCESS;
}

void run(const Launch& launch) {
  const OpenedToKernels opened(*launch.device, launch.access);
  const std::size_t count = std::size_t{launch.groups} * launch.group_size;
  if (launch.code->opencl != nullptr) {
    run_kernel(*launch.code->opencl, launch.argument, count, launch.group_size);
  } else {
    for (std::size_t id = 0; id < count; ++id) launch.code->on_cpu(launch.argument, id, count);
  }
}

void fill(ze_module_dditable_t& table) {
  table.pfnCreate = Entry<"zeModuleCreate", module_create>::call;
  table.pfnDestroy = Entry<"zeModuleDestroy", module_destroy>::call;
}

void fill(ze_kernel_dditable_t& table) {
  table.pfnCreate = Entry<"zeKernelCreate", kernel_create>::call;
  table.pfnDestroy = Entry<"zeKernelDestroy", kernel_destroy>::call;
  table.pfnSetGroupSize = Entry<"zeKernelSetGroupSize", kernel_set_group_size>::call;
  table.pfnSetIndirectAccess = Entry<"zeKernelSetIndirectAccess", kernel_set_access>::call;
  table.pfnSetArgumentValue = Entry<"zeKernelSetArgumentValue", kernel_set_argument>::call;
}

}  // namespace accord::test::level_zero
