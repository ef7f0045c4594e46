// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the loader and the tests call by name, the devices, and the errors that are asked for:
// ACCORD_TEST_ZE_FAIL=zeMemFree:3 makes the third call of that function fail, zeMemFree:3+ every
// call from the third on; several with commas; zeMemFree:3@70000001: with that result
// (hexadecimal). ACCORD_TEST_ZE_WITHOUT=fp64: the devices have no double precision; =atomics: no
// atomic accesses of 64 bits; =spirv: their driver takes no module.
#include "driver.h"

#include <level_zero/zes_api.h>
#include <level_zero/zes_ddi.h>
#include <level_zero/zet_api.h>
#include <level_zero/zet_ddi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace accord::test::level_zero {

State& state() {
  static State& all = *new State;
  return all;
}

void fail(const std::string& what) {
  std::fprintf(stderr, "level zero test driver: %s\n", what.c_str());
  std::abort();
}

Object* find_object(const void* handle, Object::Kind kind) {
  const auto found = state().objects.find(static_cast<Object*>(const_cast<void*>(handle)));
  return found != state().objects.end() && found->second->kind == kind ? found->second.get()
                                                                       : nullptr;
}

void* add(std::unique_ptr<Object> object) {
  const std::lock_guard lock(state().mutex);
  Object* const handle = object.get();
  state().objects.emplace(handle, std::move(object));
  return handle;
}

ze_result_t destroy(const void* handle, Object::Kind kind) {
  const std::lock_guard lock(state().mutex);
  Object* const object = find_object(handle, kind);
  if (object == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (object->users != 0) fail("an object is destroyed while it is in use");
  state().objects.erase(object);
  return ZE_RESULT_SUCCESS;
}

namespace {

struct Failure {
  std::string function;
  long first = 1;
  bool lasting = false;
  ze_result_t result = ZE_RESULT_ERROR_UNKNOWN;
  long calls = 0;
};

struct Failures {
  std::mutex mutex;
  std::vector<Failure> all;

  Failures() { set(std::getenv("ACCORD_TEST_ZE_FAIL")); }

  void set(const char* text) {
    const std::lock_guard lock(mutex);
    all.clear();
    std::stringstream items(text == nullptr ? "" : text);
    for (std::string item; std::getline(items, item, ',');) {
      const std::size_t colon = item.find(':');
      Failure failure{.function = item.substr(0, colon)};
      if (colon != std::string::npos) {
        failure.first = std::strtol(item.c_str() + colon + 1, nullptr, 10);
        const std::size_t at = item.find('@');
        if (at != std::string::npos)
          failure.result =
              static_cast<ze_result_t>(std::strtoul(item.c_str() + at + 1, nullptr, 16));
        failure.lasting = item.find('+') != std::string::npos;
      }
      all.push_back(failure);
    }
  }
};

Failures& failures() {
  static Failures& all = *new Failures;
  return all;
}

std::vector<Device*>& devices() {
  static std::vector<Device*> all = [] {
    std::vector<Device*> made;
    for (int number = 0; number < kDevices; ++number) {
      auto device = std::make_unique<Device>();
      device->number = number;
      made.push_back(device.get());
      add(std::move(device));
    }
    return made;
  }();
  return all;
}

std::vector<Device*>& tiles() {
  static std::vector<Device*> all = [] {
    std::vector<Device*> made;
    for (int number = 0; number < kTiles; ++number) {
      auto tile = std::make_unique<Device>();
      tile->is_tile = true;
      made.push_back(tile.get());
      add(std::move(tile));
    }
    return made;
  }();
  return all;
}

template <class Handle, class From>
ze_result_t list(const std::vector<From*>& all, std::uint32_t* count, Handle* handles) {
  const auto total = static_cast<std::uint32_t>(all.size());
  if (handles != nullptr && *count != 0) {
    for (std::uint32_t i = 0; i < std::min(*count, total); ++i)
      handles[i] = reinterpret_cast<Handle>(all[i]);
  }
  if (*count == 0 || *count > total) *count = total;
  return ZE_RESULT_SUCCESS;
}

ze_result_t init(ze_init_flags_t) {
  static Object* const driver = [] {
    auto made = std::make_unique<Object>(Object::Kind::driver);
    return static_cast<Object*>(add(std::move(made)));
  }();
  return driver != nullptr ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNINITIALIZED;
}

ze_result_t driver_get(std::uint32_t* count, ze_driver_handle_t* handles) {
  std::vector<Object*> drivers;
  {
    const std::lock_guard lock(state().mutex);
    for (const auto& [object, owner] : state().objects) {
      if (object->kind == Object::Kind::driver) drivers.push_back(object);
    }
  }
  return drivers.empty() ? ZE_RESULT_ERROR_UNINITIALIZED : list(drivers, count, handles);
}

ze_result_t device_get(ze_driver_handle_t, std::uint32_t* count, ze_device_handle_t* handles) {
  return list(devices(), count, handles);
}

ze_result_t device_get_tiles(ze_device_handle_t device, std::uint32_t* count,
                             ze_device_handle_t* handles) {
  const bool has_tiles = reinterpret_cast<Object*>(device) == devices()[0];
  return list(has_tiles ? tiles() : std::vector<Device*>(), count, handles);
}

ze_result_t device_get_properties(ze_device_handle_t handle, ze_device_properties_t* properties) {
  const std::lock_guard lock(state().mutex);
  const auto* device = find<Device>(handle, Object::Kind::device);
  if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  properties->type = ZE_DEVICE_TYPE_GPU;
  properties->vendorId = 0x8086;
  properties->maxMemAllocSize = std::uint64_t{1} << 40;
  std::snprintf(properties->name, sizeof properties->name, "Level Zero test device %d",
                device->number);
  std::memset(properties->uuid.id, 0x20 + device->number, sizeof properties->uuid.id);
  return ZE_RESULT_SUCCESS;
}

// One group that computes, one that only copies, with two engines.
ze_result_t device_get_queue_groups(ze_device_handle_t, std::uint32_t* count,
                                    ze_command_queue_group_properties_t* groups) {
  for (std::uint32_t i = 0; groups != nullptr && i < std::min(*count, 2U); ++i) {
    if (groups[i].stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES)
      return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    groups[i].flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
    if (i == 0) groups[i].flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
    groups[i].numQueues = i + 1;
  }
  *count = 2;
  return ZE_RESULT_SUCCESS;
}

ze_result_t device_get_memories(ze_device_handle_t, std::uint32_t* count,
                                ze_device_memory_properties_t* memories) {
  if (memories != nullptr && *count != 0) {
    if (memories[0].stype != ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES)
      return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    memories[0].totalSize = std::uint64_t{4} << 30;
  }
  *count = 1;
  return ZE_RESULT_SUCCESS;
}

ze_result_t device_get_module_properties(ze_device_handle_t,
                                         ze_device_module_properties_t* properties) {
  if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES)
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  properties->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
  properties->flags = 0;
  if (!is_without("fp64")) properties->flags |= ZE_DEVICE_MODULE_FLAG_FP64;
  if (!is_without("atomics")) properties->flags |= ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
  properties->maxArgumentsSize = 1024;
  return ZE_RESULT_SUCCESS;
}

ze_result_t device_can_access_peer(ze_device_handle_t, ze_device_handle_t, ze_bool_t* access) {
  *access = 1;
  return ZE_RESULT_SUCCESS;
}

ze_result_t context_create(ze_driver_handle_t driver, const ze_context_desc_t* description,
                           ze_context_handle_t* context) {
  if (description->stype != ZE_STRUCTURE_TYPE_CONTEXT_DESC) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  {
    const std::lock_guard lock(state().mutex);
    if (find_object(driver, Object::Kind::driver) == nullptr)
      return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  }
  *context = static_cast<ze_context_handle_t>(add(std::make_unique<Object>(Object::Kind::context)));
  return ZE_RESULT_SUCCESS;
}

ze_result_t context_destroy(ze_context_handle_t context) {
  return destroy(context, Object::Kind::context);
}

ze_result_t context_make_resident(ze_context_handle_t, ze_device_handle_t handle, void* pointer,
                                  std::size_t size_bytes) {
  const std::lock_guard lock(state().mutex);
  const auto* device = find<Device>(handle, Object::Kind::device);
  const std::shared_ptr<Allocation> found = find_allocation(pointer);
  if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (found == nullptr || size_bytes > found->size_bytes) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  found->residence.push_back(device);
  return ZE_RESULT_SUCCESS;
}

template <class Table>
ze_result_t give(Table* table) {
  *table = {};
  if constexpr (requires { fill(*table); }) fill(*table);
  return ZE_RESULT_SUCCESS;
}

}  // namespace

ze_result_t injected(const char* function) {
  Failures& asked = failures();
  const std::lock_guard lock(asked.mutex);
  for (Failure& failure : asked.all) {
    if (failure.function != function) continue;
    ++failure.calls;
    if (failure.calls == failure.first || (failure.lasting && failure.calls > failure.first))
      return failure.result;
  }
  return ZE_RESULT_SUCCESS;
}

bool is_without(std::string_view what) {
  static const char* asked = std::getenv("ACCORD_TEST_ZE_WITHOUT");
  return asked != nullptr && what == asked;
}

void fill(ze_global_dditable_t& table) { table.pfnInit = Entry<"zeInit", init>::call; }

void fill(ze_driver_dditable_t& table) { table.pfnGet = Entry<"zeDriverGet", driver_get>::call; }

void fill(ze_device_dditable_t& table) {
  table.pfnGet = Entry<"zeDeviceGet", device_get>::call;
  table.pfnGetSubDevices = Entry<"zeDeviceGetSubDevices", device_get_tiles>::call;
  table.pfnGetProperties = Entry<"zeDeviceGetProperties", device_get_properties>::call;
  table.pfnGetCommandQueueGroupProperties =
      Entry<"zeDeviceGetCommandQueueGroupProperties", device_get_queue_groups>::call;
  table.pfnGetMemoryProperties = Entry<"zeDeviceGetMemoryProperties", device_get_memories>::call;
  table.pfnGetModuleProperties =
      Entry<"zeDeviceGetModuleProperties", device_get_module_properties>::call;
  table.pfnCanAccessPeer = Entry<"zeDeviceCanAccessPeer", device_can_access_peer>::call;
}

void fill(ze_context_dditable_t& table) {
  table.pfnCreate = Entry<"zeContextCreate", context_create>::call;
  table.pfnDestroy = Entry<"zeContextDestroy", context_destroy>::call;
  table.pfnMakeMemoryResident = Entry<"zeContextMakeMemoryResident", context_make_resident>::call;
}

}  // namespace accord::test::level_zero

using accord::test::level_zero::give;

extern "C" {

// The loader wants all tables, also those of what nobody here calls: these stay empty.
#define ACCORD_TABLE(function, type)                                                   \
  [[gnu::visibility("default")]] ze_result_t function(ze_api_version_t, type* table) { \
    return give(table);                                                                \
  }
#include "driver_tables.def"
#undef ACCORD_TABLE

// For tests that share the process: what ACCORD_TEST_ZE_FAIL says, from now on.
[[gnu::visibility("default")]] void accord_test_ze_fail(const char* text) {
  accord::test::level_zero::failures().set(text);
}

// How much the driver holds: objects of all kinds, and allocations, imported ones included.
[[gnu::visibility("default")]] void accord_test_ze_count(long* objects, long* allocations) {
  auto& state = accord::test::level_zero::state();
  const std::lock_guard lock(state.mutex);
  *objects = static_cast<long>(state.objects.size());
  *allocations = static_cast<long>(state.allocations.size());
}

}  // extern "C"
